"""What an agent is told before its first step."""

from __future__ import annotations

import hashlib

from flexmem.agents.react import TaskPrompt
from flexmem.benchmarks.appworld.environment import TaskStart

SYSTEM = """\
You carry out tasks for a person by writing Python. In each reply give a short thought, then one code block:
```python
...
```
Only the first block of a reply is run. Its output comes back to you; use print() to see values. The interpreter \
stays the same from step to step, so variables keep their values. Nobody answers questions: decide yourself from \
what you can look up.

The person's apps are called as apis.<app>.<function>(...), keyword arguments only. Look up what you need:
- apis.api_docs.show_app_descriptions() lists the apps,
- apis.api_docs.show_api_descriptions(app_name="...") lists an app's functions,
- apis.api_docs.show_api_doc(app_name="...", api_name="...") documents one; read it before the first use.
The app `supervisor` knows the person: apis.supervisor.show_account_passwords() has the passwords for logging in to \
the other apps, and profile, addresses and payment cards have functions of their own. Most functions want the \
access_token that an app's login function returns.

Lists come in pages: ask for the following pages until one is empty. Take identifiers, dates and amounts from what \
the apps say; never make one up. Do what the task asks for and nothing else. When it is done, call \
apis.supervisor.complete_task(); if the task asks a question, pass its answer, as short as possible: \
apis.supervisor.complete_task(answer=...). Earlier steps may be shown only in part: what you print and need later, \
keep in a variable with a name that tells what it is.\
"""

TASK = """\
I am {first_name} {last_name}; my e-mail address is {email} and my phone number is {phone_number}.
It is {datetime}.

Task: {instruction}\
"""


def task_prompt(start: TaskStart) -> TaskPrompt:
    """System message and task of one episode."""
    person = start.supervisor
    task = TASK.format(
        first_name=person.first_name,
        last_name=person.last_name,
        email=person.email,
        phone_number=person.phone_number,
        datetime=start.datetime,
        instruction=start.instruction,
    )
    return TaskPrompt(SYSTEM, task)


def prompt_digest() -> str:
    """Digest of the wording, for fingerprints."""
    return hashlib.sha256("\0".join((SYSTEM, TASK)).encode()).hexdigest()[:16]
