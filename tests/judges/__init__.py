"""What other clients make of the same bytes."""

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # or importing litellm asks the network
