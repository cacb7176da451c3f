"""Vulkan without wgpu: what the driver takes for each kind of barrier and queue, and random gathers by kind of allocation."""
import json, os, statistics, sys, time, traceback
HERE = os.path.dirname(os.path.abspath(__file__)); sys.path.insert(0, os.path.join(HERE, "site"))
import vulkan as vk
from vulkan import ffi
SMALL = os.environ.get("SMALL") == "1"
START = time.perf_counter(); BUDGET = float(os.environ.get("PART_S", "30"))
M = 1 << (26 if not SMALL else 18); L = 100 if not SMALL else 4; ROUNDS = 5 if not SMALL else 1
MiB = 1 << 20
RESULTS = {}
def left(): return BUDGET - (time.perf_counter() - START)
def save(): json.dump(RESULTS, open(os.path.join(os.environ.get("OUT", "/tmp"), "small3.json"), "w"), indent=0)

instance = vk.vkCreateInstance(vk.VkInstanceCreateInfo(pApplicationInfo=vk.VkApplicationInfo(pApplicationName="x", apiVersion=vk.VK_MAKE_VERSION(1, 2, 0))), None)
phys = sorted(vk.vkEnumeratePhysicalDevices(instance), key=lambda p: vk.vkGetPhysicalDeviceProperties(p).deviceType != vk.VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU)[0]
props = vk.vkGetPhysicalDeviceProperties(phys)
families = vk.vkGetPhysicalDeviceQueueFamilyProperties(phys)
memory = vk.vkGetPhysicalDeviceMemoryProperties(phys)
print(props.deviceName, "families", [(i, hex(f.queueFlags), f.queueCount, f.timestampValidBits) for i, f in enumerate(families)])
types = [(i, memory.memoryTypes[i].propertyFlags, memory.memoryTypes[i].heapIndex, memory.memoryHeaps[memory.memoryTypes[i].heapIndex].size >> 20) for i in range(memory.memoryTypeCount)]
print("memory types", types)
LOCAL = [i for i, flags, _, _ in types if flags & vk.VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT]
PLAIN = [i for i, flags, _, _ in types if flags & vk.VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT and not flags & vk.VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT] or LOCAL
BAR = [i for i, flags, _, _ in types if flags & vk.VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT and flags & vk.VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT]
have = {e.extensionName for e in vk.vkEnumerateDeviceExtensionProperties(phys, None)}

class Device:
    def __init__(self, robust):
        compute_only = [i for i, f in enumerate(families) if f.queueFlags & vk.VK_QUEUE_COMPUTE_BIT and not f.queueFlags & vk.VK_QUEUE_GRAPHICS_BIT]
        self.families = [0] + compute_only[:1]
        v12 = vk.VkPhysicalDeviceVulkan12Features(bufferDeviceAddress=vk.VK_TRUE)
        wanted = [e for e in ("VK_KHR_external_memory_fd", "VK_EXT_memory_priority") if e in have]
        self.exports = "VK_KHR_external_memory_fd" in wanted
        self.d = vk.vkCreateDevice(phys, vk.VkDeviceCreateInfo(pNext=v12, pQueueCreateInfos=[vk.VkDeviceQueueCreateInfo(queueFamilyIndex=f, pQueuePriorities=[1.0]) for f in self.families],
            ppEnabledExtensionNames=wanted, pEnabledFeatures=vk.VkPhysicalDeviceFeatures(robustBufferAccess=vk.VK_TRUE if robust else vk.VK_FALSE)), None)
        d = self.d
        self.queues = {f: vk.vkGetDeviceQueue(d, f, 0) for f in self.families}
        self.pools = {f: vk.vkCreateCommandPool(d, vk.VkCommandPoolCreateInfo(queueFamilyIndex=f, flags=vk.VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT), None) for f in self.families}
        self.queries = vk.vkCreateQueryPool(d, vk.VkQueryPoolCreateInfo(queryType=vk.VK_QUERY_TYPE_TIMESTAMP, queryCount=2), None)
        self.sets = vk.vkCreateDescriptorPool(d, vk.VkDescriptorPoolCreateInfo(maxSets=400, pPoolSizes=[vk.VkDescriptorPoolSize(type=vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, descriptorCount=1200)]), None)
        self.layout = vk.vkCreateDescriptorSetLayout(d, vk.VkDescriptorSetLayoutCreateInfo(pBindings=[vk.VkDescriptorSetLayoutBinding(binding=i, descriptorType=vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, descriptorCount=1, stageFlags=vk.VK_SHADER_STAGE_COMPUTE_BIT) for i in range(3)]), None)
        self.pipeline_layout = vk.vkCreatePipelineLayout(d, vk.VkPipelineLayoutCreateInfo(pSetLayouts=[self.layout], pPushConstantRanges=[vk.VkPushConstantRange(stageFlags=vk.VK_SHADER_STAGE_COMPUTE_BIT, offset=0, size=16)]), None)
        self.pipes = {}
        for name in ("write", "fill", "gather", "gather_bda"):
            code = open(os.path.join(HERE, "spv", name + ".spv"), "rb").read()
            m = vk.vkCreateShaderModule(d, vk.VkShaderModuleCreateInfo(codeSize=len(code), pCode=code), None)
            stage = vk.VkPipelineShaderStageCreateInfo(stage=vk.VK_SHADER_STAGE_COMPUTE_BIT, module=m, pName="main")
            self.pipes[name] = vk.vkCreateComputePipelines(d, None, 1, [vk.VkComputePipelineCreateInfo(stage=stage, layout=self.pipeline_layout, basePipelineIndex=-1)], None)[0]
        self.memories = []
    def alloc(self, size, type_index, flags=0, dedicated=None, export=False):
        pnext = None
        if flags: pnext = vk.VkMemoryAllocateFlagsInfo(flags=flags, pNext=pnext)
        if dedicated: pnext = vk.VkMemoryDedicatedAllocateInfo(buffer=dedicated, pNext=pnext)
        if export: pnext = vk.VkExportMemoryAllocateInfo(handleTypes=1, pNext=pnext)
        return vk.vkAllocateMemory(self.d, vk.VkMemoryAllocateInfo(allocationSize=size, memoryTypeIndex=type_index, pNext=pnext), None)
    def raw_buffer(self, size, usage=0, export=False):
        pnext = vk.VkExternalMemoryBufferCreateInfo(handleTypes=1) if export else None
        return vk.vkCreateBuffer(self.d, vk.VkBufferCreateInfo(pNext=pnext, size=size, usage=vk.VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | vk.VK_BUFFER_USAGE_TRANSFER_SRC_BIT | vk.VK_BUFFER_USAGE_TRANSFER_DST_BIT | usage), None)
    def buffer(self, size, type_index=None, block=None, at=0, flags=0, usage=0, dedicated=False, export=False):
        """block: bytes of the allocation that it lies in, at `at`; by default its own size."""
        b = self.raw_buffer(size, usage, export)
        req = vk.vkGetBufferMemoryRequirements(self.d, b)
        m = self.alloc(block or req.size, PLAIN[0] if type_index is None else type_index, flags, b if dedicated else None, export)
        vk.vkBindBufferMemory(self.d, b, m, at)
        return (b, size, m)
    def free(self, b):
        vk.vkDestroyBuffer(self.d, b[0], None); vk.vkFreeMemory(self.d, b[2], None)
    def set(self, *buffers):
        s = vk.vkAllocateDescriptorSets(self.d, vk.VkDescriptorSetAllocateInfo(descriptorPool=self.sets, pSetLayouts=[self.layout]))[0]
        vk.vkUpdateDescriptorSets(self.d, len(buffers), [vk.VkWriteDescriptorSet(dstSet=s, dstBinding=i, descriptorCount=1, descriptorType=vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, pBufferInfo=[vk.VkDescriptorBufferInfo(buffer=b[0], offset=0, range=b[1])]) for i, b in enumerate(buffers)], 0, None)
        return s
    def run(self, record, family=0):
        """ns between two timestamps around what `record(cmd)` records; None without timestamps."""
        cmd = vk.vkAllocateCommandBuffers(self.d, vk.VkCommandBufferAllocateInfo(commandPool=self.pools[family], level=vk.VK_COMMAND_BUFFER_LEVEL_PRIMARY, commandBufferCount=1))[0]
        vk.vkBeginCommandBuffer(cmd, vk.VkCommandBufferBeginInfo(flags=vk.VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT))
        vk.vkCmdResetQueryPool(cmd, self.queries, 0, 2)
        record(cmd)  # warm
        full = [vk.VkMemoryBarrier(srcAccessMask=vk.VK_ACCESS_MEMORY_WRITE_BIT | vk.VK_ACCESS_MEMORY_READ_BIT, dstAccessMask=vk.VK_ACCESS_MEMORY_WRITE_BIT | vk.VK_ACCESS_MEMORY_READ_BIT)]
        vk.vkCmdPipelineBarrier(cmd, vk.VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, vk.VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 1, full, 0, None, 0, None)
        vk.vkCmdWriteTimestamp(cmd, vk.VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, self.queries, 0)
        record(cmd)
        vk.vkCmdWriteTimestamp(cmd, vk.VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, self.queries, 1)
        vk.vkEndCommandBuffer(cmd)
        vk.vkQueueSubmit(self.queues[family], 1, [vk.VkSubmitInfo(pCommandBuffers=[cmd])], None)
        vk.vkQueueWaitIdle(self.queues[family])
        data = ffi.new("uint64_t[2]")
        vk.vkGetQueryPoolResults(self.d, self.queries, 0, 2, 16, data, 8, vk.VK_QUERY_RESULT_64_BIT | vk.VK_QUERY_RESULT_WAIT_BIT)
        vk.vkFreeCommandBuffers(self.d, self.pools[family], 1, [cmd])
        return (data[1] - data[0]) * props.limits.timestampPeriod
    def bind(self, cmd, pipe, s):
        vk.vkCmdBindPipeline(cmd, vk.VK_PIPELINE_BIND_POINT_COMPUTE, self.pipes[pipe])
        vk.vkCmdBindDescriptorSets(cmd, vk.VK_PIPELINE_BIND_POINT_COMPUTE, self.pipeline_layout, 0, 1, [s], 0, None)
    def push(self, cmd, *words):
        data = ffi.new("uint32_t[]", list(words))
        vk.vkCmdPushConstants(cmd, self.pipeline_layout, vk.VK_SHADER_STAGE_COMPUTE_BIT, 0, 4 * len(words), data)
    def fill(self, b, mask=0xffffffff, flip=0):
        s = self.set(b, b, b)
        def record(cmd):
            self.bind(cmd, "fill", s); self.push(cmd, mask, flip, b[1] // 4); vk.vkCmdDispatch(cmd, 1024, 1, 1)
        self.run(record)

COMPUTE, V, F = vk.VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, vk.VK_PIPELINE_STAGE_VERTEX_SHADER_BIT, vk.VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT
RW = vk.VK_ACCESS_SHADER_READ_BIT | vk.VK_ACCESS_SHADER_WRITE_BIT
def barrier_kinds(b, more):
    def buffers(bs, src, dst, access=RW):
        made = [vk.VkBufferMemoryBarrier(srcAccessMask=access, dstAccessMask=access, srcQueueFamilyIndex=0xffffffff, dstQueueFamilyIndex=0xffffffff, buffer=x[0], offset=0, size=0xffffffffffffffff) for x in bs]
        return lambda cmd: vk.vkCmdPipelineBarrier(cmd, src, dst, 0, 0, None, len(made), made, 0, None)
    def general(src, dst, sa, da):
        made = [vk.VkMemoryBarrier(srcAccessMask=sa, dstAccessMask=da)]
        return lambda cmd: vk.vkCmdPipelineBarrier(cmd, src, dst, 0, 1, made, 0, None, 0, None)
    top, bottom = vk.VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, vk.VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT
    return {
        "no barrier": None,
        "execution alone": lambda cmd: vk.vkCmdPipelineBarrier(cmd, COMPUTE, COMPUTE, 0, 0, None, 0, None, 0, None),
        "one buffer, compute": buffers([b], COMPUTE, COMPUTE),
        "memory, compute, write to read": general(COMPUTE, COMPUTE, vk.VK_ACCESS_SHADER_WRITE_BIT, vk.VK_ACCESS_SHADER_READ_BIT),
        "memory, compute, read/write": general(COMPUTE, COMPUTE, RW, RW),
        "one buffer, vertex | fragment | compute (wgpu's)": buffers([b], top | V | F | COMPUTE, bottom | V | F | COMPUTE),
        "4 buffers, vertex | fragment | compute (wgpu's)": buffers([b, *more], top | V | F | COMPUTE, bottom | V | F | COMPUTE),
        "4 buffers, compute": buffers([b, *more], COMPUTE, COMPUTE),
        "all commands": general(vk.VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, vk.VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, vk.VK_ACCESS_MEMORY_READ_BIT | vk.VK_ACCESS_MEMORY_WRITE_BIT, vk.VK_ACCESS_MEMORY_READ_BIT | vk.VK_ACCESS_MEMORY_WRITE_BIT),
    }

def barriers(dev):
    found = {}
    b = dev.buffer(4 << 20); more = [dev.buffer(4 << 20) for _ in range(3)]; s = dev.set(b, b, b)
    for family in dev.families:
        for wgs in (1, 132):
            times = {}
            for r in range(ROUNDS):
                for name, put in barrier_kinds(b, more).items():
                    if family and ("vertex" in name): continue
                    def record(cmd):
                        dev.bind(cmd, "write", s)
                        for _ in range(L):
                            vk.vkCmdDispatch(cmd, wgs, 1, 1)
                            if put: put(cmd)
                    times.setdefault(name, []).append(dev.run(record, family) / L / 1e3)
            for name, t in times.items():
                found[f"queue {family}, {wgs} x 256, {name}"] = round(statistics.median(t), 3)
    return found

def gathers(dev):
    found = {}
    idx, out = dev.buffer(4 * M), dev.buffer(4 * M)
    BDA_FLAG, BDA = 2, 0x20000
    for items in ((1 << 22, 1 << 24) if not SMALL else (1 << 14,)):
        n = 4 * items
        dev.fill(idx, items - 1, 0x5bd1e995)
        big = 4 << 30 if not SMALL else 8 * MiB
        kinds = {
            "own allocation": dict(), "in 256 MiB": dict(block=256 * MiB if not SMALL else MiB), "in 256 MiB, at 64 KiB": dict(block=256 * MiB if not SMALL else MiB, at=64 << 10),
            "in 4 GiB": dict(block=big), "allocation of 32 GiB": dict(block=(32 << 30) if not SMALL else 8 * MiB), "device address": dict(flags=BDA_FLAG, usage=BDA), "dedicated": dict(dedicated=True),
        }
        if dev.exports: kinds["exported"] = dict(export=True, dedicated=True)
        for t in PLAIN[1:]: kinds[f"memory type {t}"] = dict(type_index=t)
        for t in BAR: kinds[f"memory type {t}, host-visible"] = dict(type_index=t)
        for name, how in kinds.items():
            if left() < 1: return found
            try:
                b = dev.buffer(n, **how)
                dev.fill(b)
                s = dev.set(idx, b, out); wgs = M // 1024
                x, y = (wgs, 1) if wgs <= 32768 else (32768, wgs // 32768)
                def record(cmd):
                    dev.bind(cmd, "gather", s); vk.vkCmdDispatch(cmd, x, y, 1)
                found[f"{n >> 20} MiB, {name}"] = round(statistics.median(dev.run(record) / 1e3 for _ in range(ROUNDS)), 1)
                if name == "device address":
                    info = vk.VkBufferDeviceAddressInfo(buffer=b[0]); address = int(vk._vulkan.lib.vkGetBufferDeviceAddress(dev.d, ffi.addressof(info)))
                    def record(cmd):
                        dev.bind(cmd, "gather_bda", s); dev.push(cmd, address & 0xffffffff, address >> 32); vk.vkCmdDispatch(cmd, x, y, 1)
                    found[f"{n >> 20} MiB, device address, read by it ({hex(address)})"] = round(statistics.median(dev.run(record) / 1e3 for _ in range(ROUNDS)), 1)
                dev.free(b)
            except Exception as e: print("FAILED", name, repr(e)[:200])
    # all three in exported or all in device-address memory
    for label, how in (("all with device address", dict(flags=BDA_FLAG, usage=BDA)), ("all exported", dict(export=True, dedicated=True)), ("all in host-visible device memory", dict(type_index=BAR[0]) if BAR else None)):
        if how is None or left() < 1 or ("export" in label and not dev.exports): continue
        try:
            items = 1 << 22 if not SMALL else 1 << 14
            i, t, o = dev.buffer(4 * M, **how), dev.buffer(4 * items, **how), dev.buffer(4 * M, **how)
            dev.fill(i, items - 1, 0x5bd1e995); dev.fill(t); s = dev.set(i, t, o); wgs = M // 1024
            x, y = (wgs, 1) if wgs <= 32768 else (32768, wgs // 32768)
            def record(cmd):
                dev.bind(cmd, "gather", s); vk.vkCmdDispatch(cmd, x, y, 1)
            found[f"{4 * items >> 20} MiB, {label}"] = round(statistics.median(dev.run(record) / 1e3 for _ in range(ROUNDS)), 1)
            for b in (i, t, o): dev.free(b)
        except Exception as e: print("FAILED", label, repr(e)[:200])
    return found

def clock():
    """The clock is held by CUDA's library, as gw.hold_clock does."""
    try:
        import gridwise_py as gw
        return gw.hold_clock(gw.request_device("cpu") if SMALL else gw.request_device())
    except Exception as e:
        print("no clock", e)
        import contextlib
        return contextlib.nullcontext()

with clock() as held:
    print("clock held", held)
    for robust in (False, True):
        try:
            dev = Device(robust)
            for name, f in (("gathers", gathers), ("barriers", barriers)):
                if left() < 2: break
                RESULTS[f"{name}, robust {robust}"] = r = f(dev); save()
                print(f"-- Vulkan alone, {name}, robustBufferAccess {robust}, us, {left():.0f} s left")
                for k, v in r.items(): print(f"   {k:66} {v}", flush=True)
        except Exception: traceback.print_exc(limit=4)
        finally:
            try: vk.vkDestroyDevice(dev.d, None)
            except Exception: pass
