"""The kernels on CUDA devices, in Triton."""
