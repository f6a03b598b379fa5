"""What has a name, and says it."""


class Named:
    """Something with a name, which stands for it where it is shown."""

    name: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"
