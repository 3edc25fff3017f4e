"""Neural networks for many teachers at once, and for students: needs the extra ``torch``.

Importing this package imports no PyTorch; its modules that need it do, when they are imported.
"""
