#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) readonly buffer I { uvec4 idx[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer T { uint table[]; };
layout(set = 0, binding = 2) buffer O { uvec4 o[]; };
layout(push_constant) uniform P { T t; };
void main() { uint i = (gl_WorkGroupID.x + gl_WorkGroupID.y * 32768u) * 256u + gl_LocalInvocationID.x; uvec4 q = idx[i]; o[i] = uvec4(t.table[q.x], t.table[q.y], t.table[q.z], t.table[q.w]); }
