"""What transformers loads by `model.generate(..., custom_generate=FOLDER, trust_remote_code=True)`."""

from draftcert.integrations.transformers import generate_from_folder


def generate(model, **arguments):
    """Decode by draft trees; the output is that of greedy decoding with these arguments."""
    return generate_from_folder(model, **arguments)
