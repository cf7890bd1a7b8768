// modify(): the transition table of verbs, mandatory and optional attributes, ranges.
#include <array>
#include <string>

#include "transport/core.hpp"

namespace roce::transport {

using verbs::QpAttributes;
using verbs::QpState;
using verbs::QpType;

namespace {

/// A bit per attribute that a transition may need.
enum AttributeBit : std::uint32_t {
  kPathMtu = 1 << 0,
  kPath = 1 << 1,
  kDestQpNum = 1 << 2,
  kRqPsn = 1 << 3,
  kSqPsn = 1 << 4,
  kMaxRdAtomic = 1 << 5,
  kMaxDestRdAtomic = 1 << 6,
  kMinRnrTimer = 1 << 7,
  kTimeout = 1 << 8,
  kRetryCnt = 1 << 9,
  kRnrRetry = 1 << 10,
  kQpAccessFlags = 1 << 11,
  kQkey = 1 << 12,
  kPkey = 1 << 13,
};
constexpr std::array<const char*, 14> kAttributeNames = {
    "path_mtu", "path",          "dest_qp_num",        "rq_psn",
    "sq_psn",   "max_rd_atomic", "max_dest_rd_atomic", "min_rnr_timer",
    "timeout",  "retry_cnt",     "rnr_retry",          "qp_access_flags",
    "qkey",     "pkey"};

struct Attributes {
  std::uint32_t required = 0;
  std::uint32_t optional = 0;
};

/// One row per transition; a column per transport. What is in neither set is refused.
struct Transition {
  QpState from, to;
  Attributes rc, uc, ud;
};

constexpr std::uint32_t kRtrUc = kPath | kPathMtu | kDestQpNum | kRqPsn;
constexpr std::uint32_t kRtrRc = kRtrUc | kMaxDestRdAtomic | kMinRnrTimer;
constexpr std::uint32_t kRtsRc = kTimeout | kRetryCnt | kRnrRetry | kSqPsn | kMaxRdAtomic;
constexpr std::uint32_t kSqdRc =
    kPath | kTimeout | kRetryCnt | kRnrRetry | kMaxRdAtomic | kMaxDestRdAtomic | kMinRnrTimer;
constexpr std::uint32_t kLater = kQpAccessFlags | kMinRnrTimer;

// The path MTU of a UD QP is its port's; without a port attribute it is set here.
constexpr std::array<Transition, 10> kTransitions = {{
    {QpState::RESET,
     QpState::INIT,
     {kQpAccessFlags, kPkey},
     {kQpAccessFlags, kPkey},
     {kQkey, kPkey | kPathMtu}},
    {QpState::INIT,
     QpState::INIT,
     {0, kQpAccessFlags | kPkey},
     {0, kQpAccessFlags | kPkey},
     {0, kQkey | kPkey | kPathMtu}},
    {QpState::INIT,
     QpState::RTR,
     {kRtrRc, kQpAccessFlags | kPkey},
     {kRtrUc, kQpAccessFlags | kPkey},
     {0, kQkey | kPkey | kPathMtu}},
    {QpState::RTR, QpState::RTS, {kRtsRc, kLater}, {kSqPsn, kQpAccessFlags}, {kSqPsn, kQkey}},
    {QpState::RTS, QpState::RTS, {0, kLater}, {0, kQpAccessFlags}, {0, kQkey}},
    {QpState::RTS, QpState::SQD, {}, {}, {}},
    {QpState::SQD,
     QpState::SQD,
     {0, kSqdRc | kQpAccessFlags | kPkey},
     {0, kPath | kQpAccessFlags | kPkey},
     {0, kQkey | kPkey}},
    {QpState::SQD, QpState::RTS, {0, kLater}, {0, kQpAccessFlags}, {0, kQkey}},
    {QpState::SQE, QpState::RTS, {}, {0, kQpAccessFlags}, {0, kQkey}},
    {QpState::RESET, QpState::RESET, {}, {}, {}},
}};

std::uint32_t present(const QpAttributes& a) {
  std::uint32_t bits = 0;
  const auto set = [&bits](bool has, std::uint32_t bit) { bits |= has ? bit : 0; };
  set(a.path_mtu.has_value(), kPathMtu);
  set(a.path.has_value(), kPath);
  set(a.dest_qp_num.has_value(), kDestQpNum);
  set(a.rq_psn.has_value(), kRqPsn);
  set(a.sq_psn.has_value(), kSqPsn);
  set(a.max_rd_atomic.has_value(), kMaxRdAtomic);
  set(a.max_dest_rd_atomic.has_value(), kMaxDestRdAtomic);
  set(a.min_rnr_timer.has_value(), kMinRnrTimer);
  set(a.timeout.has_value(), kTimeout);
  set(a.retry_cnt.has_value(), kRetryCnt);
  set(a.rnr_retry.has_value(), kRnrRetry);
  set(a.qp_access_flags.has_value(), kQpAccessFlags);
  set(a.qkey.has_value(), kQkey);
  set(a.pkey.has_value(), kPkey);
  return bits;
}

const char* first_name(std::uint32_t bits) {
  return kAttributeNames[static_cast<std::size_t>(__builtin_ctz(bits))];
}

Result<void> check_transition(QpType type, QpState from, QpState to, std::uint32_t given) {
  // From anywhere to RESET, and to ERR from all but RESET, without attributes.
  const bool always = to == QpState::RESET || (to == QpState::ERR && from != QpState::RESET);
  Attributes rule;
  bool known = always;
  for (const Transition& row : kTransitions) {
    if (always || row.from != from || row.to != to) continue;
    if (type == QpType::RC && from == QpState::SQE) continue;  // RC has no SQE
    known = true;
    rule = type == QpType::RC ? row.rc : type == QpType::UC ? row.uc : row.ud;
  }
  const std::string step =
      std::string(verbs::name_of(from)) + " to " + std::string(verbs::name_of(to));
  if (!known)
    return failure("qp_state", "no transition from " + step,
                   "go through RESET, INIT, RTR and RTS in order");
  if (const std::uint32_t missing = rule.required & ~given; missing != 0)
    return failure(first_name(missing), step + " needs this attribute", "set it");
  if (const std::uint32_t extra = given & ~(rule.required | rule.optional); extra != 0)
    return failure(first_name(extra), step + " does not take this attribute", "leave it empty");
  return {};
}

template <class T>
Result<void> check_most(const char* name, const std::optional<T>& value, unsigned most) {
  if (!value || *value <= most) return {};
  return failure(name, std::to_string(*value) + " is above " + std::to_string(most),
                 "choose 0 to " + std::to_string(most));
}

Result<void> check_ranges(const QpAttributes& a) {
  constexpr unsigned kAllAccess = verbs::ACCESS_LOCAL_WRITE | verbs::ACCESS_REMOTE_WRITE |
                                  verbs::ACCESS_REMOTE_READ | verbs::ACCESS_REMOTE_ATOMIC;
  if (a.path_mtu && (*a.path_mtu < verbs::Mtu::MTU_256 || *a.path_mtu > verbs::Mtu::MTU_4096))
    return failure("path_mtu", "not one of 256, 512, 1024, 2048, 4096", "use a value of Mtu");
  if (a.path && a.path->source.is_v4() != a.path->destination.is_v4())
    return failure("path", "source and destination are of different families",
                   "use two IPv4 or two IPv6 addresses");
  for (const auto& result :
       {check_most("max_rd_atomic", a.max_rd_atomic, 128),
        check_most("max_dest_rd_atomic", a.max_dest_rd_atomic, 128),
        check_most("min_rnr_timer", a.min_rnr_timer, 31), check_most("timeout", a.timeout, 31),
        check_most("retry_cnt", a.retry_cnt, 7), check_most("rnr_retry", a.rnr_retry, 7),
        check_most("qp_access_flags", a.qp_access_flags, kAllAccess)})
    if (!result) return result;
  return {};
}

template <class T>
void keep(std::optional<T>& attribute, const std::optional<T>& change) {
  if (change) attribute = change;
}

}  // namespace

Result<void> Qp::Core::modify(const QpAttributes& changes, Effects& effects) {
  const QpState from = context.state;
  const QpState to = changes.qp_state.value_or(from);
  if (auto ok = check_transition(context.type, from, to, present(changes)); !ok) return ok;
  if (auto ok = check_ranges(changes); !ok) return ok;
  take(changes);
  if (to != from || to == QpState::RESET) {
    enter(to);
    if (to == QpState::RTR) responder.start(attributes);
    if (to == QpState::RTS && from == QpState::RTR) requester.start(attributes);
    if (to == QpState::RTS) requester.resume();
  } else {
    responder.configure(attributes);
    requester.configure(attributes);
  }
  settle(effects);
  return {};
}

/// Takes the attributes that are given, and what the context holds of them.
void Qp::Core::take(const QpAttributes& changes) {
  QpAttributes& a = attributes;
  keep(a.path_mtu, changes.path_mtu);
  keep(a.path, changes.path);
  keep(a.dest_qp_num, changes.dest_qp_num);
  keep(a.rq_psn, changes.rq_psn);
  keep(a.sq_psn, changes.sq_psn);
  keep(a.max_rd_atomic, changes.max_rd_atomic);
  keep(a.max_dest_rd_atomic, changes.max_dest_rd_atomic);
  keep(a.min_rnr_timer, changes.min_rnr_timer);
  keep(a.timeout, changes.timeout);
  keep(a.retry_cnt, changes.retry_cnt);
  keep(a.rnr_retry, changes.rnr_retry);
  keep(a.qp_access_flags, changes.qp_access_flags);
  keep(a.qkey, changes.qkey);
  keep(a.pkey, changes.pkey);
  constexpr unsigned kMtuBase = 7;  // 128 << Mtu bytes
  context.mtu_shift = static_cast<std::uint8_t>(
      kMtuBase + static_cast<unsigned>(a.path_mtu.value_or(verbs::Mtu::MTU_4096)));
  if (changes.path) context.path = wire::make_path_headers(*changes.path);
  context.peer = a.dest_qp_num.value_or(Qpn{});
  context.qkey = a.qkey.value_or(0);
  context.pkey = a.pkey.value_or(wire::kDefaultPkey);
}

/// Changes the state and does what the new one demands.
void Qp::Core::enter(QpState state) {
  context.state = state;
  attributes.qp_state = state;
  switch (state) {
    case QpState::RESET:
      attributes = QpAttributes{};
      attributes.qp_state = state;
      take(attributes);
      context.events = 0;
      context.cq_error_raised = communication_ = request_turn_ = false;
      requester.reset();
      responder.reset();
      break;
    case QpState::SQD:
      requester.drain();
      break;
    case QpState::SQE:
      requester.flush();
      break;
    case QpState::ERR:
      requester.flush();
      responder.flush();
      break;
    default:
      break;
  }
}

}  // namespace roce::transport
