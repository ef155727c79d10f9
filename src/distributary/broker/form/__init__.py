"""The form of messages: what must hold of one beyond the types of its fields."""

from distributary.broker.form.form import Speaker, check_form, speaker_of
from distributary.broker.form.rules import Rules

__all__ = ["Rules", "Speaker", "check_form", "speaker_of"]
