"""`python -m tilewright.service.cli`: the command line where the script is not on the path."""

from ..command import main

if __name__ == "__main__":
    main()
