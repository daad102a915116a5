"""What can be wrong with the documentation."""


class DocsError(Exception):
    """Something that whoever runs it has to mend; the message says what and where."""
