"""What a worker on this machine is made of, from its settings."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

from ..measure.device import Device, DeviceError
from ..measure.device_lock import DeviceLock
from ..measure.messages import WorkerHello
from .settings import Settings, SettingsError

__all__ = ["NO_TOKEN", "WorkerSetup"]

NO_TOKEN = (
    "a worker needs a token: make one with `tilewright token create --scope worker` where the server's "
    "database is, and name its file with --token-file or TILEWRIGHT_TOKEN_FILE"
)


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """A worker's name, device and labels. Raises SettingsError where the settings name no such device."""

    settings: Settings
    device: Device
    name: str

    @classmethod
    def of(cls, settings: Settings) -> WorkerSetup:
        try:
            device = Device.parse(settings.worker_device)
        except DeviceError as error:
            raise SettingsError(f"worker_device: {error}") from error
        return cls(settings, device, settings.worker_name or _own_name(device))

    def lock(self) -> DeviceLock:
        """Of the device, not acquired yet."""
        folder = self.settings.lock_folder
        return DeviceLock(self.device, self.name, Path(folder) if folder else None)

    @property
    def missing_token(self) -> str | None:
        """What is wrong with the token as far as this machine can tell."""
        token = self.settings.token
        if token is not None and token.get_secret_value().strip():
            return None
        return NO_TOKEN + ("; the one that is set is empty" if token is not None else "")

    def hello(self) -> WorkerHello:
        """What it says of itself; to be called once this process is pinned to the device."""
        from ..measure.probe import probe

        return probe(self.name, self.settings.worker_labels, str(self.device))


def _own_name(device: Device) -> str:
    """The host's; with the device's where a host may have several."""
    host = platform.node() or "worker"
    return f"{host}-{device.name}" if device.name else host
