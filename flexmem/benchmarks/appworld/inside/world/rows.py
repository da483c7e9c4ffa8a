"""Adding rows to the apps' databases with AppWorld's own models, as its APIs would have added them."""

from __future__ import annotations

from typing import Any

from appworld.common.datetime import DateTime

from world.people import Person

YEAR = 2023
NOW = DateTime(YEAR, 5, 18, 12, 0, 0)
"""When every task takes place: AppWorld's own day."""


def moment(month: int, day: int, hour: int = 9, minute: int = 0) -> DateTime:
    """A time of the world's year."""
    return DateTime(YEAR, month, day, hour, minute, 0)


class Rows:
    """Adds rows about one supervisor. ``models`` is AppWorld's collection of all apps' models."""

    def __init__(self, models: Any, me: Person) -> None:
        self.models = models
        self.me = me

    def contact(self, person: Person, relationships: list[str], home: str, work: str, when: DateTime) -> None:
        """A person in my phone's contacts."""
        self.models.phone.Contact.create_save(
            user_id=self.me.number,
            first_name=person.first_name,
            last_name=person.last_name,
            email=person.email,
            phone_number=person.phone_number,
            relationships=relationships,
            birthday=person.birthday,
            home_address=home,
            work_address=work,
            created_at=when,
        )

    def text(self, sender: Person, receiver: Person, message: str, when: DateTime) -> None:
        """A text message, in both phones."""
        phone = self.models.phone
        sent = phone.GlobalTextMessage.create_save(
            sender_id=sender.number, receiver_id=receiver.number, message=message, created_at=when
        )
        for person in (sender, receiver):
            phone.UserTextMessage.create_save(global_text_message_id=sent.id, user_id=person.number, created_at=when)

    def alarm(self, time: str, label: str, days: list[str]) -> None:
        """An alarm of mine that is on."""
        self.models.phone.Alarm.create_save(
            user_id=self.me.number,
            time=time,
            repeat_days=days,
            label=label,
            enabled=True,
            snooze_minutes=10,
            vibration=True,
            created_at=moment(1, 9),
        )

    def mail(self, sender: Person, receiver: Person, subject: str, body: str, when: DateTime) -> None:
        """A mail that nobody has answered, in both mailboxes."""
        gmail = self.models.gmail
        mail = gmail.Email.create_save(
            sender_id=sender.number, recipient_ids=[receiver.number], subject=subject, body=body, created_at=when
        )
        thread = gmail.GlobalEmailThread.create_save(email_ids=[mail.id], created_at=when, updated_at=when)
        for person in (sender, receiver):
            gmail.UserEmailThread.create_save(
                global_email_thread_id=thread.id,
                user_id=person.number,
                email_ids=[mail.id],
                incoming=person is receiver,
                outgoing=person is sender,
                read=person is sender,
                created_at=when,
                updated_at=when,
            )

    def note(self, title: str, content: str, tags: list[str], when: DateTime) -> None:
        """A note of mine."""
        self.models.simple_note.Note.create_save(
            user_id=self.me.number,
            title=title,
            content=content,
            tags=tags,
            pinned=False,
            created_at=when,
            updated_at=when,
        )

    def payment(self, sender: Person, receiver: Person, amount: float, description: str, when: DateTime) -> None:
        """Money that was sent with Venmo."""
        self.models.venmo.Transaction.create_save(
            sender_id=sender.number,
            receiver_id=receiver.number,
            amount=amount,
            description=description,
            private=False,
            created_at=when,
            updated_at=when,
        )

    def project(self, name: str, description: str, when: DateTime) -> int:
        """A project of mine in Todoist; gives its id."""
        todoist = self.models.todoist
        project = todoist.Project.create_save(
            user_id=self.me.number, name=name, description=description, created_at=when
        )
        todoist.ProjectCollaboratorLink.create_save(project_id=project.id, user_id=self.me.number, created_at=when)
        return int(project.id)

    def task(
        self, project: int, title: str, description: str, order: int, due: DateTime, *, completed: bool = False
    ) -> int:
        """A task of a project; gives its id."""
        task = self.models.todoist.Task.create_save(
            project_id=project,
            section_id=None,
            user_id=self.me.number,
            title=title,
            description=description,
            due_date=due,
            priority="medium",
            is_completed=completed,
            order_index=order,
            created_at=moment(3, 1),
        )
        return int(task.id)

    def remark(self, task: int, text: str, when: DateTime) -> None:
        """A comment of mine on a task."""
        self.models.todoist.TaskComment.create_save(task_id=task, user_id=self.me.number, content=text, created_at=when)

    def folder(self, path: str) -> None:
        """A folder below my home folder; ``path`` ends with a slash, and its parent exists."""
        self.models.file_system.Directory.create_save(
            path=self.home + path, user_id=self.me.number, created_at=moment(1, 2), updated_at=moment(1, 2)
        )

    def file(self, path: str, content: str, when: DateTime) -> None:
        """A file below my home folder."""
        self.models.file_system.File.create_save(
            path=self.home + path, user_id=self.me.number, content=content, created_at=when, updated_at=when
        )

    @property
    def home(self) -> str:
        """My home folder, with a slash at its end."""
        return f"/home/{self.me.first_name.lower()}/"
