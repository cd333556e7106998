"""Addresses of databases, as a person may see them."""

import re

_PASSWORD = re.compile(r"(?<=://)([^:@/?#]*):[^/?#]*@")
_PASSWORD_OPTION = re.compile(r"(?i)([?&](?:password|sslpassword)=)[^&]*")


def shown(url: str) -> str:
    """The url with `***` in the place of a password; any other text as it is."""
    return _PASSWORD_OPTION.sub(r"\1***", _PASSWORD.sub(r"\1:***@", url))
