"""Recorded flights as demonstrations.

positions.py a table of positions (JSON, CSV, Parquet, or the one inside traffic's wheel), checked
cleaning.py  which rows and flights are used, and which are dropped why
airspeed.py  the wind that all aircraft share, and the airspeed that a pilot reads
passages.py  one climb or descent through a band of altitudes, row by row
"""
