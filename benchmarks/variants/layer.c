// A Vulkan layer that writes what the driver says of each compute pipeline (registers, memory) as lines to $PIPE_STATS.
#include <vulkan/vulkan.h>
#include <vulkan/vk_layer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
static PFN_vkGetInstanceProcAddr next_gipa; static PFN_vkGetDeviceProcAddr next_gdpa;
static VkInstance the_instance; static int on = 0;
static PFN_vkCreateComputePipelines next_ccp; static PFN_vkGetPipelineExecutablePropertiesKHR get_props;
static PFN_vkGetPipelineExecutableStatisticsKHR get_stats;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* ci, const VkAllocationCallbacks* a, VkInstance* out) {
  VkLayerInstanceCreateInfo* link = (VkLayerInstanceCreateInfo*)ci->pNext;
  while (link && !(link->sType == VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO && link->function == VK_LAYER_LINK_INFO)) link = (VkLayerInstanceCreateInfo*)link->pNext;
  if (!link) return VK_ERROR_INITIALIZATION_FAILED;
  next_gipa = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  PFN_vkCreateInstance f = (PFN_vkCreateInstance)next_gipa(NULL, "vkCreateInstance");
  VkResult r = f(ci, a, out);
  if (r == VK_SUCCESS) the_instance = *out;
  return r;
}
static VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice p, const VkDeviceCreateInfo* ci, const VkAllocationCallbacks* a, VkDevice* out) {
  VkLayerDeviceCreateInfo* link = (VkLayerDeviceCreateInfo*)ci->pNext;
  while (link && !(link->sType == VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO && link->function == VK_LAYER_LINK_INFO)) link = (VkLayerDeviceCreateInfo*)link->pNext;
  if (!link) return VK_ERROR_INITIALIZATION_FAILED;
  next_gdpa = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  PFN_vkGetInstanceProcAddr gipa = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  PFN_vkCreateDevice f = (PFN_vkCreateDevice)gipa(the_instance, "vkCreateDevice");
  PFN_vkEnumerateDeviceExtensionProperties e = (PFN_vkEnumerateDeviceExtensionProperties)gipa(the_instance, "vkEnumerateDeviceExtensionProperties");
  uint32_t n = 0; e(p, NULL, &n, NULL);
  VkExtensionProperties* all = calloc(n + 1, sizeof *all); e(p, NULL, &n, all);
  on = 0;
  for (uint32_t i = 0; i < n; i++) if (!strcmp(all[i].extensionName, "VK_KHR_pipeline_executable_properties")) on = 1;
  free(all);
  for (uint32_t i = 0; i < ci->enabledExtensionCount; i++) if (!strcmp(ci->ppEnabledExtensionNames[i], "VK_KHR_pipeline_executable_properties")) { on = 0; }
  // NO_ROBUST=1: without checks of storage buffers' bounds
  VkPhysicalDeviceFeatures plain; int dropped = 0; VkDeviceCreateInfo without = *ci;
  if (getenv("NO_ROBUST")) {
    for (VkBaseOutStructure* p = (VkBaseOutStructure*)ci->pNext; p; p = p->pNext) {
      if (p->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2) { VkPhysicalDeviceFeatures2* f2 = (void*)p; dropped += f2->features.robustBufferAccess ? 1 : 0; f2->features.robustBufferAccess = VK_FALSE; }
      if (p->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT) { VkPhysicalDeviceRobustness2FeaturesEXT* f2 = (void*)p; dropped += f2->robustBufferAccess2 ? 2 : 0; f2->robustBufferAccess2 = VK_FALSE; f2->robustImageAccess2 = VK_FALSE; }
    }
    if (ci->pEnabledFeatures) { plain = *ci->pEnabledFeatures; dropped += plain.robustBufferAccess ? 4 : 0; plain.robustBufferAccess = VK_FALSE; without.pEnabledFeatures = &plain; }
  }
  ci = &without;
  VkDeviceCreateInfo mine = *ci; VkResult r;
  if (on) {
    const char** names = calloc(ci->enabledExtensionCount + 1, sizeof *names);
    for (uint32_t i = 0; i < ci->enabledExtensionCount; i++) names[i] = ci->ppEnabledExtensionNames[i];
    names[ci->enabledExtensionCount] = "VK_KHR_pipeline_executable_properties";
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR feature = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR, (void*)ci->pNext, VK_TRUE};
    mine.pNext = &feature; mine.enabledExtensionCount++; mine.ppEnabledExtensionNames = names;
    r = f(p, &mine, a, out);
    if (r != VK_SUCCESS) { on = 0; r = f(p, ci, a, out); }
  } else r = f(p, ci, a, out);
  if (r != VK_SUCCESS) return r;
  next_ccp = (PFN_vkCreateComputePipelines)next_gdpa(*out, "vkCreateComputePipelines");
  get_props = (PFN_vkGetPipelineExecutablePropertiesKHR)next_gdpa(*out, "vkGetPipelineExecutablePropertiesKHR");
  get_stats = (PFN_vkGetPipelineExecutableStatisticsKHR)next_gdpa(*out, "vkGetPipelineExecutableStatisticsKHR");
  if (!get_props || !get_stats) on = 0;
  if (getenv("PIPE_STATS")) { FILE* o = fopen(getenv("PIPE_STATS"), "a"); if (o) { fprintf(o, "device on=%d robust dropped=%d\n", on, dropped); fclose(o); } }
  return r;
}
static VKAPI_ATTR VkResult VKAPI_CALL create_pipelines(VkDevice d, VkPipelineCache c, uint32_t n, const VkComputePipelineCreateInfo* ci, const VkAllocationCallbacks* a, VkPipeline* out) {
  if (!on) return next_ccp(d, c, n, ci, a, out);
  VkComputePipelineCreateInfo* mine = malloc(n * sizeof *mine);
  memcpy(mine, ci, n * sizeof *mine);
  for (uint32_t i = 0; i < n; i++) mine[i].flags |= VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
  VkResult r = next_ccp(d, c, n, mine, a, out);
  free(mine);
  const char* path = getenv("PIPE_STATS");
  if (r != VK_SUCCESS || !path) return r;
  pthread_mutex_lock(&lock);
  FILE* o = fopen(path, "a");
  for (uint32_t i = 0; o && i < n; i++) {
    VkPipelineInfoKHR info = {VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, NULL, out[i]};
    uint32_t m = 0; get_props(d, &info, &m, NULL);
    if (m > 8) m = 8;
    VkPipelineExecutablePropertiesKHR props[8];
    for (uint32_t k = 0; k < m; k++) { props[k].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR; props[k].pNext = NULL; }
    get_props(d, &info, &m, props);
    fprintf(o, "pipeline");
    for (uint32_t k = 0; k < m; k++) {
      VkPipelineExecutableInfoKHR which = {VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, NULL, out[i], k};
      uint32_t s = 0; get_stats(d, &which, &s, NULL);
      if (s > 64) s = 64;
      VkPipelineExecutableStatisticKHR stats[64];
      for (uint32_t j = 0; j < s; j++) { stats[j].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR; stats[j].pNext = NULL; }
      get_stats(d, &which, &s, stats);
      for (uint32_t j = 0; j < s; j++) {
        if (stats[j].format == VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR) fprintf(o, ";%s=%g", stats[j].name, stats[j].value.f64);
        else fprintf(o, ";%s=%llu", stats[j].name, (unsigned long long)stats[j].value.u64);
      }
    }
    fprintf(o, "\n");
  }
  if (o) fclose(o);
  pthread_mutex_unlock(&lock);
  return r;
}
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL gdpa(VkDevice d, const char* name) {
  if (!strcmp(name, "vkGetDeviceProcAddr")) return (PFN_vkVoidFunction)gdpa;
  if (!strcmp(name, "vkCreateComputePipelines")) return (PFN_vkVoidFunction)create_pipelines;
  return next_gdpa ? next_gdpa(d, name) : NULL;
}
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL gipa(VkInstance i, const char* name) {
  if (!strcmp(name, "vkGetInstanceProcAddr")) return (PFN_vkVoidFunction)gipa;
  if (!strcmp(name, "vkGetDeviceProcAddr")) return (PFN_vkVoidFunction)gdpa;
  if (!strcmp(name, "vkCreateInstance")) return (PFN_vkVoidFunction)create_instance;
  if (!strcmp(name, "vkCreateDevice")) return (PFN_vkVoidFunction)create_device;
  if (!strcmp(name, "vkCreateComputePipelines")) return (PFN_vkVoidFunction)create_pipelines;
  return next_gipa ? next_gipa(i, name) : NULL;
}
__attribute__((visibility("default"))) VKAPI_ATTR VkResult VKAPI_CALL vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* v) {
  if (v->loaderLayerInterfaceVersion > 2) v->loaderLayerInterfaceVersion = 2;
  v->pfnGetInstanceProcAddr = gipa; v->pfnGetDeviceProcAddr = gdpa; v->pfnGetPhysicalDeviceProcAddr = NULL;
  return VK_SUCCESS;
}
