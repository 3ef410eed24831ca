// matmul: CUDA C++ by tilewright.

extern "C" __global__ void __launch_bounds__(256) matmul(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C) {
  extern __shared__ __align__(16) unsigned char tw_shared[];
  const int blockIdx_x = blockIdx.x;
  const int blockIdx_y = blockIdx.y;
  const int threadIdx_x = threadIdx.x;
  const int threadIdx_y = threadIdx.y;
  float *const A_shared = (float *)(tw_shared + 0);
  C[blockIdx_y * 1024 + threadIdx_y * 64 + blockIdx_x * 16 + threadIdx_x] = 0.0f;
  A_shared[threadIdx_y * 16 + threadIdx_x] = A[blockIdx_y * 1024 + threadIdx_y * 64 + threadIdx_x];
  #pragma unroll 1
  for (int ko = 0; ko < 3; ++ko) {
    // A_shared: read in one iteration of ko, written in the next (thread (0, 0) reads [0, 0, 1], thread (1, 0) writes it)
    __syncthreads();
    A_shared[((ko + 1) % 2) * 256 + threadIdx_y * 16 + threadIdx_x] = A[blockIdx_y * 1024 + threadIdx_y * 64 + ko * 16 + threadIdx_x + 16];
    #pragma unroll 1
    for (int ki = 0; ki < 16; ++ki) {
      C[blockIdx_y * 1024 + threadIdx_y * 64 + blockIdx_x * 16 + threadIdx_x] = C[blockIdx_y * 1024 + threadIdx_y * 64 + blockIdx_x * 16 + threadIdx_x] + A_shared[(ko % 2) * 256 + threadIdx_y * 16 + ki] * B[ko * 1024 + ki * 64 + blockIdx_x * 16 + threadIdx_x];
    }
  }
  // A_shared: written before, read after (thread (0, 0) writes [1, 0, 0], thread (1, 0) reads it)
  __syncthreads();
  #pragma unroll 1
  for (int ki_1 = 0; ki_1 < 16; ++ki_1) {
    C[blockIdx_y * 1024 + threadIdx_y * 64 + blockIdx_x * 16 + threadIdx_x] = C[blockIdx_y * 1024 + threadIdx_y * 64 + blockIdx_x * 16 + threadIdx_x] + A_shared[threadIdx_y * 16 + ki_1 + 256] * B[ki_1 * 64 + blockIdx_x * 16 + threadIdx_x + 3072];
  }
}
