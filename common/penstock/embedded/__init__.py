"""PostgreSQL that Penstock starts by itself, for laptops and small installations: no server to install."""
