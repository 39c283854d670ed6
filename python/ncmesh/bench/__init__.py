"""
The scoreboard: every scheme of a service on every mesh, and how near files come to their bound.

`meshes` has the meshes and `instances` draws who sends to whom. `file`, `tunnel` and `stream` say
what is sent and what is read from a result. `bound` and `cliques` compute the least that any scheme
needs. `table` joins all of it in one row for each run, `compare` sets schemes beside each other,
and `page` and `pictures` show them. Runs are those of `ncmesh.campaign`: only missing ones are
made.
"""
