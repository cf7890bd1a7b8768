// A stand-in for libibverbs, put in front of the real one by LD_PRELOAD: one RoCE device whose QPs
// carry nothing and complete every work request at once.
//
// With it the unmodified perftest programs run their whole TCP exchange on a machine without an
// RDMA device. Only what perftest calls is there. STANDIN_GID is the device's GID of index 1;
// STANDIN_MTU its MTU (1..5); with STANDIN_ECHO all registered memory runs through all byte values,
// so that a program which spins on an incoming WRITE goes on. gettimeofday() runs fast: perftest
// gauges its clock by it for 0.2 s of spinning before each line of results.
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <sys/time.h>
#include <time.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <thread>

// perftest was linked with these before verbs.h turned them into macros or inline functions.
#undef ibv_query_port
#undef ibv_reg_mr

namespace {

struct Cq {
  ibv_cq base;
  std::deque<ibv_wc> completions;
};

ibv_device g_device;
ibv_context g_context;
std::uint32_t g_next_qpn = 0x11;

int number_of(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

void complete(ibv_cq* cq, std::uint64_t wr_id, ibv_wc_opcode opcode, std::uint32_t qpn) {
  ibv_wc wc{};
  wc.wr_id = wr_id;
  wc.status = IBV_WC_SUCCESS;
  wc.opcode = opcode;
  wc.qp_num = qpn;
  reinterpret_cast<Cq*>(cq)->completions.push_back(wc);
}

int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr**) {
  for (; wr != nullptr; wr = wr->next)
    if ((wr->send_flags & IBV_SEND_SIGNALED) != 0)
      complete(qp->send_cq, wr->wr_id, IBV_WC_SEND, qp->qp_num);
  return 0;
}

int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr**) {
  for (; wr != nullptr; wr = wr->next) complete(qp->recv_cq, wr->wr_id, IBV_WC_RECV, qp->qp_num);
  return 0;
}

int poll_cq(ibv_cq* cq, int most, ibv_wc* wcs) {
  auto& waiting = reinterpret_cast<Cq*>(cq)->completions;
  int n = 0;
  for (; n < most && !waiting.empty(); ++n) {
    wcs[n] = waiting.front();
    waiting.pop_front();
  }
  return n;
}

int req_notify_cq(ibv_cq*, int) {
  return 0;
}

void echo(void* memory, std::size_t bytes) {
  std::thread([memory, bytes] {
    for (int value = 0;; ++value) {
      std::memset(memory, value, bytes);
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
  }).detach();
}

}  // namespace

extern "C" {

int gettimeofday(timeval* time, void*) noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t fast_us = now.tv_sec * 50'000'000 + now.tv_nsec / 20;
  time->tv_sec = fast_us / 1'000'000;
  time->tv_usec = fast_us % 1'000'000;
  return 0;
}

ibv_device** ibv_get_device_list(int* count) {
  static ibv_device* list[2] = {&g_device, nullptr};
  std::strcpy(g_device.name, "standin0");
  std::strcpy(g_device.dev_name, "standin0");
  g_device.node_type = IBV_NODE_CA;
  g_device.transport_type = IBV_TRANSPORT_IB;
  if (count != nullptr) *count = 1;
  return list;
}
void ibv_free_device_list(ibv_device**) {}
const char* ibv_get_device_name(ibv_device* device) {
  return device->name;
}
ibv_context* ibv_open_device(ibv_device* device) {
  g_context.device = device;
  g_context.num_comp_vectors = 1;
  g_context.ops.post_send = post_send;
  g_context.ops.post_recv = post_recv;
  g_context.ops.poll_cq = poll_cq;
  g_context.ops.req_notify_cq = req_notify_cq;
  return &g_context;
}
int ibv_close_device(ibv_context*) {
  return 0;
}
int ibv_query_device(ibv_context*, ibv_device_attr* attr) {
  *attr = {};
  attr->max_qp_rd_atom = 128;
  attr->max_qp_init_rd_atom = 128;
  attr->max_qp = 65536;
  attr->max_qp_wr = 16384;
  attr->max_sge = 32;
  attr->atomic_cap = IBV_ATOMIC_HCA;
  attr->phys_port_cnt = 1;
  return 0;
}
int ibv_query_port(ibv_context*, std::uint8_t, _compat_ibv_port_attr* compat) {
  auto* attr = reinterpret_cast<ibv_port_attr*>(compat);
  attr->state = IBV_PORT_ACTIVE;
  attr->max_mtu = IBV_MTU_4096;
  attr->active_mtu = static_cast<ibv_mtu>(number_of("STANDIN_MTU", IBV_MTU_1024));
  attr->gid_tbl_len = 2;
  attr->pkey_tbl_len = 1;
  attr->max_msg_sz = 1U << 31;
  attr->lid = 0;
  attr->active_speed = 1;
  attr->active_width = 1;
  attr->link_layer = IBV_LINK_LAYER_ETHERNET;
  return 0;
}
int ibv_query_gid(ibv_context*, std::uint8_t, int, ibv_gid* gid) {
  const char* text = std::getenv("STANDIN_GID");
  return inet_pton(AF_INET6, text != nullptr ? text : "::ffff:198.18.0.1", gid->raw) == 1 ? 0 : 1;
}
int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port, std::uint32_t index,
                      ibv_gid_entry* entry, std::uint32_t, std::size_t) {
  *entry = {};
  entry->gid_index = index;
  entry->port_num = port;
  entry->gid_type = IBV_GID_TYPE_ROCE_V2;
  return ibv_query_gid(context, 1, static_cast<int>(index), &entry->gid);
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  auto* pd = new ibv_pd{};
  pd->context = context;
  return pd;
}
int ibv_dealloc_pd(ibv_pd* pd) {
  delete pd;
  return 0;
}
ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int) {
  static std::uint32_t key = 0x213;
  auto* mr = new ibv_mr{};
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = address;
  mr->length = length;
  mr->lkey = mr->rkey = key++;
  if (std::getenv("STANDIN_ECHO") != nullptr) echo(address, length);
  return mr;
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t,
                         unsigned int access) {
  return ibv_reg_mr(pd, address, length, static_cast<int>(access));
}
int ibv_dereg_mr(ibv_mr*) {
  return 0;  // an echo may still run through it
}

ibv_cq* ibv_create_cq(ibv_context* context, int, void*, ibv_comp_channel*, int) {
  auto* cq = new Cq{};
  cq->base.context = context;
  return &cq->base;
}
int ibv_destroy_cq(ibv_cq* cq) {
  delete reinterpret_cast<Cq*>(cq);
  return 0;
}
ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* init) {
  auto* qp = new ibv_qp{};
  qp->context = pd->context;
  qp->pd = pd;
  qp->send_cq = init->send_cq;
  qp->recv_cq = init->recv_cq;
  qp->qp_num = g_next_qpn++;
  qp->qp_type = init->qp_type;
  return qp;
}
int ibv_destroy_qp(ibv_qp* qp) {
  delete qp;
  return 0;
}
int ibv_modify_qp(ibv_qp*, ibv_qp_attr*, int) {
  return 0;
}
int ibv_query_qp(ibv_qp*, ibv_qp_attr* attr, int, ibv_qp_init_attr* init) {
  *attr = {};
  *init = {};
  return 0;
}
ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr*) {
  auto* ah = new ibv_ah{};
  ah->context = pd->context;
  ah->pd = pd;
  return ah;
}
int ibv_destroy_ah(ibv_ah* ah) {
  delete ah;
  return 0;
}

}  // extern "C"
