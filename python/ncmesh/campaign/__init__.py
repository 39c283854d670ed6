"""
Campaigns: parameters x schemes x seeds. Only missing runs are made.

A campaign file names a scenario and what to vary. Each combination is a `Run`, identified by a hash
of everything that decides its outcome. Runs are spread over processes or a Dask cluster. Results go
to a directory of Parquet files that only grows, so an interrupted campaign continues where it
stopped.
"""

from ncmesh.campaign.file import Campaign, load
from ncmesh.campaign.runs import Run
from ncmesh.campaign.scenario import Scenario
from ncmesh.campaign.schedule import execute
from ncmesh.campaign.store import Store
from ncmesh.campaign.workers import Workers

__all__ = ["Campaign", "Run", "Scenario", "Store", "Workers", "execute", "load"]
