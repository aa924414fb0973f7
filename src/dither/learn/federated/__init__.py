"""Federated averaging with a guarantee for each client, simulated or on real clients.

`FedAvg` fixes the rounds and their charge, `train` runs them in one process, and `Server` round by
round. With `DistributedNoise` clients add the noise themselves, so that a server that sees sums
alone learns as little of a client as is stated.
"""

from dither.learn.federated._clients import ClientData, LocalSGD, Network
from dither.learn.federated._clients import Model as Model
from dither.learn.federated._fedavg import FedAvg
from dither.learn.federated._flower import client_app, server_app
from dither.learn.federated._noise import DistributedNoise
from dither.learn.federated._reports import train_on_reports
from dither.learn.federated._server import Faults as Faults
from dither.learn.federated._server import Round as Round
from dither.learn.federated._server import Server
from dither.learn.federated._server import Task as Task
from dither.learn.federated._simulate import FederatedFit as FederatedFit
from dither.learn.federated._simulate import train

__all__ = [
    "ClientData",
    "DistributedNoise",
    "FedAvg",
    "LocalSGD",
    "Network",
    "Server",
    "client_app",
    "server_app",
    "train",
    "train_on_reports",
]
