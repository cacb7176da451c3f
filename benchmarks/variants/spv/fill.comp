#version 450
layout(local_size_x = 256) in;
layout(set = 0, binding = 0) buffer O { uint o[]; };
layout(push_constant) uniform P { uint mask; uint flip; uint count; };
uint hash(uint x) { uint h = x * 747796405u + 2891336453u; h = ((h >> ((h >> 28u) + 4u)) ^ h) * 277803737u; return (h >> 22u) ^ h; }
void main() { for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * 256u) o[i] = hash(i ^ flip) & mask; }
