"""
Campaigns: parameters x schemes x seeds, of which only what is missing is run.

A campaign file names a scenario and what to vary. Each combination is a `Run`, known by a hash of all that
decides its outcome. Runs are spread over processes or a Dask cluster; what comes of them lands in a
directory of Parquet files that only ever grows, so that an interrupted campaign goes on where it was.
"""

from ncmesh.campaign.file import Campaign, load
from ncmesh.campaign.runs import Run
from ncmesh.campaign.scenario import Scenario
from ncmesh.campaign.schedule import execute
from ncmesh.campaign.store import Store
from ncmesh.campaign.workers import Workers

__all__ = ["Campaign", "Run", "Scenario", "Store", "Workers", "execute", "load"]
