"""Workers of the engine, one file each; `auto.py` lists them."""
