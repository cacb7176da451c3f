#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) buffer O { uint o[]; };
void main() { o[gl_GlobalInvocationID.x] = gl_GlobalInvocationID.x; }
