"""The vectors on a Doc. Pickled Docs name the functions of hooks that their hooks are."""
