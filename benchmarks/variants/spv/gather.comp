#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer I { uvec4 idx[]; };
layout(set = 0, binding = 1) readonly buffer T { uint table[]; };
layout(set = 0, binding = 2) buffer O { uvec4 o[]; };
void main() { uint i = (gl_WorkGroupID.x + gl_WorkGroupID.y * 32768u) * 256u + gl_LocalInvocationID.x; uvec4 q = idx[i]; o[i] = uvec4(table[q.x], table[q.y], table[q.z], table[q.w]); }
