"""Containers and child processes in which a benchmark's environment runs. Nothing here knows a benchmark; only this
package imports ``docker``.

Who needs a sandbox describes it (`ContainerSpec`, `ChildSpec`), starts it, and leases what runs in it from a
`SandboxPool`. Whatever is left by a process that was killed is found by its labels and removed by `sweep`.
"""
