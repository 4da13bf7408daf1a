"""Record batches to and from Arrow columns, by kernels compiled with numba. Needs the extra
`semel[arrow]`.
"""
