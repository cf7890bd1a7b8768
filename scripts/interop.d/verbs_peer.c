/* verbs_peer: a peer for roce-perf on plain libibverbs, with data validation.
 *
 * usage: verbs_peer TEST -d DEV -x GID_INDEX -p PORT -n N [-s SIZE] [-q QPS] [-c RC|UC]
 *                   [-A FETCH_AND_ADD|CMP_AND_SWAP] [HOST]
 *
 * TEST is write_bw, read_bw, send_bw or atomic_bw; a server without HOST (IPv4), else a client.
 * Speaks perftest 6.06's TCP exchange, fills and checks data as docs/data-validation.md says.
 * Shares no code with roce-perf or perftest. Prints PASS or FAIL; exit 0, 1 or 2 (set-up).
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WRITE, READ, SEND, ATOMIC };
enum { MAX_QPS = 64, DEPTH = 16, OUT_READS = 16, KEYS = 108 };

struct keys {
  unsigned lid, out_reads, qpn, psn, rkey, srqn;
  unsigned long long vaddr;
  union ibv_gid gid;
};

static int test, swap_type, qp_type = IBV_QPT_RC, gid_index = 1, tcp_port = 18515;
static uint32_t qps = 1;
static uint64_t size = 65536, iters = 1000, stride, slots;
static const char *device = "rxe0", *host;
static int sock = -1;
static struct ibv_context* context;
static struct ibv_pd* pd;
static struct ibv_cq* cq;
static struct ibv_mr *mr, *scratch_mr;
static uint8_t *buffer, *scratch;
static struct ibv_qp* qp[MAX_QPS];
static struct keys ours[MAX_QPS], theirs[MAX_QPS];
static int mtu;
static uint64_t posted[MAX_QPS], done[MAX_QPS], bytes_checked;

static _Noreturn void stop(int status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  printf("FAIL: ");
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
  exit(status);
}

/* --- the pattern, docs/data-validation.md --- */

static uint8_t pattern(uint32_t i, uint64_t o) {
  return (uint8_t)(o * 131 + (o >> 8) * 7 + (o >> 16) * 13 + i * 17 + 0x5a);
}

static uint64_t offset_of(uint64_t n) {
  if (size > 2048) return 0;
  uint64_t step = (size + 63) / 64 * 64;
  return n % (4096 / step) * step;
}

static void check(const uint8_t* at, uint32_t i, uint64_t n, uint64_t from) {
  for (uint64_t o = 0; o < size; ++o)
    if (at[o] != pattern(i, from + o))
      stop(1, "QP %u message %llu offset %llu: expected %02x, found %02x", i, (unsigned long long)n,
           (unsigned long long)o, pattern(i, from + o), at[o]);
  bytes_checked += size;
}

/* --- the TCP exchange --- */

static void put(const void* data, size_t n) {
  if (send(sock, data, n, MSG_NOSIGNAL) != (ssize_t)n) stop(1, "TCP write: %s", strerror(errno));
}

static void get(void* data, size_t n) {
  if (recv(sock, data, n, MSG_WAITALL) != (ssize_t)n) stop(1, "TCP read: the peer has gone");
}

/* The client writes then reads, the server reads then writes. */
static void swap(const void* out, void* in, size_t n) {
  if (host) put(out, n);
  get(in, n);
  if (!host) put(out, n);
}

static void swap_keys(uint32_t i) {
  char out[KEYS] = {0}, in[KEYS];
  int n = sprintf(out, "%04x:%04x:%06x:%06x:%08x:%016llx:", ours[i].lid, ours[i].out_reads,
                  ours[i].qpn, ours[i].psn, ours[i].rkey, ours[i].vaddr);
  for (int k = 0; k < 16; ++k) n += sprintf(out + n, "%02x:", ours[i].gid.raw[k]);
  sprintf(out + n, "%08x:", ours[i].srqn);
  swap(out, in, KEYS);
  in[KEYS - 1] = 0;
  struct keys* t = &theirs[i];
  int used = 0;
  if (sscanf(in, "%x:%x:%x:%x:%x:%llx:%n", &t->lid, &t->out_reads, &t->qpn, &t->psn, &t->rkey,
             &t->vaddr, &used) != 6)
    stop(1, "keys: '%s'", in);
  for (int k = 0; k < 16; ++k) {
    unsigned byte;
    if (sscanf(in + used + 3 * k, "%2x:", &byte) != 1) stop(1, "GID: '%s'", in);
    t->gid.raw[k] = (uint8_t)byte;
  }
}

static void sync_ends(void) {
  swap_keys(0);
}

static void open_socket(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)tcp_port)};
  int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (host) {
    inet_pton(AF_INET, host, &address.sin_addr);
    if (connect(fd, (void*)&address, sizeof address)) stop(2, "connect: %s", strerror(errno));
    sock = fd;
  } else {
    if (bind(fd, (void*)&address, sizeof address) || listen(fd, 1))
      stop(2, "listen: %s", strerror(errno));
    sock = accept(fd, NULL, NULL);
    close(fd);
  }
  setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void open_exchange(void) {
  char version[16] = "6.06", their_version[16];
  swap(version, their_version, sizeof version);
  const uint32_t words[2] = {htonl(4096), htonl(64)};
  for (int i = 0; i < 2; ++i) {
    uint32_t word;
    swap(&words[i], &word, sizeof word);
    if (word != words[i]) stop(1, "system data %u", ntohl(word));
  }
  char digit[2] = {(char)('0' + mtu), 0}, theirs_digit[2];
  swap(digit, theirs_digit, 2);
  if (theirs_digit[0] - '0' < mtu) mtu = theirs_digit[0] - '0';
  for (uint32_t i = 0; i < qps; ++i) swap_keys(i);
}

static void swap_report(void) {
  uint64_t words[5] = {htobe64(size), htobe64(iters * qps), 0, 0, 0};
  for (int i = 0; i < 5; ++i) {
    uint64_t word;
    swap(&words[i], &word, sizeof word);
  }
}

/* --- verbs --- */

static void open_verbs(void) {
  int count = 0;
  struct ibv_device** list = ibv_get_device_list(&count);
  for (int i = 0; i < count; ++i)
    if (!strcmp(ibv_get_device_name(list[i]), device)) context = ibv_open_device(list[i]);
  if (!context) stop(2, "no device %s", device);
  struct ibv_port_attr port;
  ibv_query_port(context, 1, &port);
  mtu = port.active_mtu;
  pd = ibv_alloc_pd(context);
  cq = ibv_create_cq(context, (int)(qps * (slots + DEPTH) * 2), NULL, NULL, 0);
  const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                     IBV_ACCESS_REMOTE_ATOMIC;
  if (posix_memalign((void**)&buffer, 4096, qps * stride) ||
      posix_memalign((void**)&scratch, 4096, qps * slots * size))
    stop(2, "no memory");
  memset(buffer, 0, qps * stride);
  memset(scratch, 0, qps * slots * size);
  mr = ibv_reg_mr(pd, buffer, qps * stride, access);
  scratch_mr = ibv_reg_mr(pd, scratch, qps * slots * size, IBV_ACCESS_LOCAL_WRITE);
  if (!pd || !cq || !mr || !scratch_mr) stop(2, "verbs objects: %s", strerror(errno));
}

static void fill_buffer(void) {
  const int holds = (test == WRITE && host) || (test == READ && !host) || (test == SEND && host);
  for (uint32_t i = 0; holds && i < qps; ++i)
    for (uint64_t o = 0; o < stride; ++o) buffer[i * stride + o] = pattern(i, o);
}

static void make_qp(uint32_t i) {
  struct ibv_qp_init_attr init = {.send_cq = cq,
                                  .recv_cq = cq,
                                  .qp_type = qp_type,
                                  .cap = {.max_send_wr = DEPTH,
                                          .max_recv_wr = (uint32_t)slots,
                                          .max_send_sge = 1,
                                          .max_recv_sge = 1}};
  qp[i] = ibv_create_qp(pd, &init);
  if (!qp[i]) stop(2, "ibv_create_qp: %s", strerror(errno));
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  if (qp_type == IBV_QPT_RC)
    attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  if (ibv_modify_qp(qp[i], &attr,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
    stop(2, "to INIT: %s", strerror(errno));
  ours[i] = (struct keys){.out_reads = test == READ || test == ATOMIC ? OUT_READS : 1,
                          .qpn = qp[i]->qp_num,
                          .psn = (unsigned)rand() & 0xffffff,
                          .rkey = mr->rkey,
                          .vaddr = (uintptr_t)buffer + i * stride};
  if (ibv_query_gid(context, 1, gid_index, &ours[i].gid)) stop(2, "no GID %d", gid_index);
}

static void connect_qp(uint32_t i) {
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_RTR,
      .path_mtu = (enum ibv_mtu)mtu,
      .dest_qp_num = theirs[i].qpn,
      .rq_psn = theirs[i].psn,
      .max_dest_rd_atomic = (uint8_t)ours[i].out_reads,
      .min_rnr_timer = 12,
      .ah_attr = {
          .is_global = 1,
          .port_num = 1,
          .grh = {.dgid = theirs[i].gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 255}}};
  const int rc = qp_type == IBV_QPT_RC;
  int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (rc) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (ibv_modify_qp(qp[i], &attr, mask)) stop(1, "to RTR: %s", strerror(errno));
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = ours[i].psn;
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 7;
  attr.max_rd_atomic = (uint8_t)(theirs[i].out_reads < OUT_READS ? theirs[i].out_reads : OUT_READS);
  mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (rc) mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  if (ibv_modify_qp(qp[i], &attr, mask)) stop(1, "to RTS: %s", strerror(errno));
}

/* --- the run --- */

static uint8_t* slot(uint32_t i, uint64_t n) {
  return scratch + (i * slots + n % slots) * size;
}

static void post_receive(uint32_t i) {
  struct ibv_sge sge = {(uintptr_t)slot(i, posted[i]), (uint32_t)size, scratch_mr->lkey};
  struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;
  memset((void*)(uintptr_t)sge.addr, 0, size);
  if (ibv_post_recv(qp[i], &wr, &bad)) stop(1, "ibv_post_recv");
  ++posted[i];
}

static void post(uint32_t i) {
  const uint64_t n = posted[i], at = offset_of(n);
  struct ibv_sge sge = {(uintptr_t)(buffer + i * stride), (uint32_t)size, mr->lkey};
  struct ibv_send_wr wr = {.wr_id = i,
                           .sg_list = &sge,
                           .num_sge = 1,
                           .send_flags = IBV_SEND_SIGNALED},
                     *bad;
  if (test == READ || test == ATOMIC) {
    sge.addr = (uintptr_t)slot(i, n);
    sge.lkey = scratch_mr->lkey;
    memset(slot(i, n), 0, size);
  }
  wr.wr.rdma.remote_addr = theirs[i].vaddr + at;
  wr.wr.rdma.rkey = theirs[i].rkey;
  if (test == WRITE) {
    wr.opcode = IBV_WR_RDMA_WRITE;
    sge.addr += at;
  } else if (test == READ) {
    wr.opcode = IBV_WR_RDMA_READ;
  } else if (test == SEND) {
    wr.opcode = IBV_WR_SEND;
  } else {
    wr.opcode = swap_type ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr.wr.atomic.remote_addr = theirs[i].vaddr;
    wr.wr.atomic.rkey = theirs[i].rkey;
    wr.wr.atomic.compare_add = swap_type ? n : 1;
    wr.wr.atomic.swap = n + 1;
  }
  if (ibv_post_send(qp[i], &wr, &bad)) stop(1, "ibv_post_send");
  ++posted[i];
}

static void completed(const struct ibv_wc* wc) {
  const uint32_t i = (uint32_t)wc->wr_id;
  if (wc->status)
    stop(1, "QP %u message %llu: %s", i, (unsigned long long)done[i],
         ibv_wc_status_str(wc->status));
  const uint64_t n = done[i]++;
  if (test == READ) check(slot(i, n), i, n, offset_of(n));
  if (test == ATOMIC) {
    uint64_t original;
    memcpy(&original, slot(i, n), sizeof original);
    if (original != n)
      stop(1, "QP %u atomic %llu found %llu", i, (unsigned long long)n,
           (unsigned long long)original);
    bytes_checked += size;
  }
  if (test == SEND && !host) {
    if (wc->byte_len != size)
      stop(1, "QP %u message %llu has %u bytes", i, (unsigned long long)n, wc->byte_len);
    check(slot(i, n), i, n, 0);
    post_receive(i);
  }
}

static void run(void) {
  const int sends = host != NULL;
  for (uint64_t left = iters * qps; left;) {
    for (uint32_t i = 0; sends && i < qps; ++i) {
      const uint64_t depth = slots < DEPTH ? slots : DEPTH;
      while (posted[i] < iters && posted[i] - done[i] < depth) post(i);
    }
    struct ibv_wc wc[16];
    const int n = ibv_poll_cq(cq, 16, wc);
    if (n < 0) stop(1, "ibv_poll_cq");
    for (int k = 0; k < n; ++k) completed(&wc[k]);
    left -= (uint64_t)n;
  }
}

/* What the responder's buffer must hold in the end. */
static void check_buffer(uint32_t i) {
  const uint8_t* at = buffer + i * stride;
  if (test == ATOMIC) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    if (word != iters) stop(1, "QP %u: the word is %llu", i, (unsigned long long)word);
    bytes_checked += sizeof word;
    return;
  }
  uint8_t* written = calloc(1, stride);
  for (uint64_t n = 0; n < iters; ++n) memset(written + offset_of(n), 1, size);
  for (uint64_t o = 0; o < stride; ++o) {
    const uint8_t expected = written[o] ? pattern(i, o) : 0;
    if (at[o] != expected)
      stop(1, "QP %u offset %llu: expected %02x, found %02x", i, (unsigned long long)o, expected,
           at[o]);
  }
  bytes_checked += stride;
  free(written);
}

static void parse(int argc, char** argv) {
  const char* names[] = {"write_bw", "read_bw", "send_bw", "atomic_bw"};
  for (test = 0; argc > 1 && test < 4 && strcmp(argv[1], names[test]); ++test) {
  }
  if (argc < 2 || test == 4) stop(2, "usage: verbs_peer TEST [options] [HOST]");
  for (int c; (c = getopt(argc - 1, argv + 1, "d:x:p:n:s:q:c:A:")) != -1;) {
    if (c == 'd')
      device = optarg;
    else if (c == 'x')
      gid_index = atoi(optarg);
    else if (c == 'p')
      tcp_port = atoi(optarg);
    else if (c == 'n')
      iters = strtoull(optarg, NULL, 0);
    else if (c == 's')
      size = strtoull(optarg, NULL, 0);
    else if (c == 'q')
      qps = (uint32_t)atoi(optarg);
    else if (c == 'c')
      qp_type = strcmp(optarg, "UC") ? IBV_QPT_RC : IBV_QPT_UC;
    else if (c == 'A')
      swap_type = !strcmp(optarg, "CMP_AND_SWAP");
    else
      stop(2, "unknown option");
  }
  if (optind + 1 < argc) host = argv[optind + 1];
  if (test == ATOMIC) size = 8;
  if (!size || !qps || qps > MAX_QPS) stop(2, "out of range");
  stride = size > 4096 ? size : 4096;
  slots = (4u << 20) / size / qps;
  slots = slots < 2 ? 2 : slots > 64 ? 64 : slots;
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  parse(argc, argv);
  srand((unsigned)getpid());
  open_verbs();
  fill_buffer();
  for (uint32_t i = 0; i < qps; ++i) make_qp(i);
  open_socket();
  open_exchange();
  for (uint32_t i = 0; i < qps; ++i) connect_qp(i);
  if (test == SEND) sync_ends();
  for (uint32_t i = 0; i < qps; ++i) swap_keys(i);
  for (uint32_t i = 0; test == SEND && !host && i < qps; ++i)
    while (posted[i] < slots) post_receive(i);
  sync_ends();
  if (host || test == SEND) run();
  if (test != SEND) {
    sync_ends();
    swap_report();
  }
  sync_ends();
  put("done", 5);
  for (uint32_t i = 0; !host && (test == WRITE || test == ATOMIC) && i < qps; ++i) check_buffer(i);
  usleep(200000); /* the last acknowledgements may have to be sent again */
  printf("PASS: %llu bytes checked\n", (unsigned long long)bytes_checked);
  return 0;
}
