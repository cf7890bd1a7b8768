// The one table of BTH opcodes (IBTA vol. 1, 9.2.1, table 35). Parser, builder, printer, fuzzer and
// analyser all read it; there is no second list.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace roce::wire {

/// BTH opcode byte: transport in the high three bits, operation in the low five.
enum class Opcode : std::uint8_t {
  RC_SEND_FIRST = 0x00,
  RC_SEND_MIDDLE = 0x01,
  RC_SEND_LAST = 0x02,
  RC_SEND_LAST_WITH_IMMEDIATE = 0x03,
  RC_SEND_ONLY = 0x04,
  RC_SEND_ONLY_WITH_IMMEDIATE = 0x05,
  RC_RDMA_WRITE_FIRST = 0x06,
  RC_RDMA_WRITE_MIDDLE = 0x07,
  RC_RDMA_WRITE_LAST = 0x08,
  RC_RDMA_WRITE_LAST_WITH_IMMEDIATE = 0x09,
  RC_RDMA_WRITE_ONLY = 0x0a,
  RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE = 0x0b,
  RC_RDMA_READ_REQUEST = 0x0c,
  RC_RDMA_READ_RESPONSE_FIRST = 0x0d,
  RC_RDMA_READ_RESPONSE_MIDDLE = 0x0e,
  RC_RDMA_READ_RESPONSE_LAST = 0x0f,
  RC_RDMA_READ_RESPONSE_ONLY = 0x10,
  RC_ACKNOWLEDGE = 0x11,
  RC_ATOMIC_ACKNOWLEDGE = 0x12,
  RC_COMPARE_SWAP = 0x13,
  RC_FETCH_ADD = 0x14,
  RC_SEND_LAST_WITH_INVALIDATE = 0x16,
  RC_SEND_ONLY_WITH_INVALIDATE = 0x17,
  UC_SEND_FIRST = 0x20,
  UC_SEND_MIDDLE = 0x21,
  UC_SEND_LAST = 0x22,
  UC_SEND_LAST_WITH_IMMEDIATE = 0x23,
  UC_SEND_ONLY = 0x24,
  UC_SEND_ONLY_WITH_IMMEDIATE = 0x25,
  UC_RDMA_WRITE_FIRST = 0x26,
  UC_RDMA_WRITE_MIDDLE = 0x27,
  UC_RDMA_WRITE_LAST = 0x28,
  UC_RDMA_WRITE_LAST_WITH_IMMEDIATE = 0x29,
  UC_RDMA_WRITE_ONLY = 0x2a,
  UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE = 0x2b,
  UD_SEND_ONLY = 0x64,
  UD_SEND_ONLY_WITH_IMMEDIATE = 0x65,
  CNP = 0x81,
};

enum class Transport : std::uint8_t { RC, UC, UD, CNP };

/// What a packet asks for or answers.
enum class Operation : std::uint8_t {
  SEND,
  RDMA_WRITE,
  RDMA_READ_REQUEST,
  RDMA_READ_RESPONSE,
  ACKNOWLEDGE,
  ATOMIC_ACKNOWLEDGE,
  COMPARE_SWAP,
  FETCH_ADD,
  CNP,
};

/// Place of a packet in its message.
enum class Position : std::uint8_t { FIRST, MIDDLE, LAST, ONLY };

/// Extension headers, as bits; on the wire they stand in the order of their bits.
enum ExtensionBits : std::uint8_t {
  kDeth = 1 << 0,
  kReth = 1 << 1,
  kAtomicEth = 1 << 2,
  kImmDt = 1 << 3,
  kIeth = 1 << 4,
  kAeth = 1 << 5,
  kAtomicAckEth = 1 << 6,
  kCnpPadding = 1 << 7,  ///< the 16 reserved zero bytes behind the BTH of a CNP (annex A17)
};

/// Sizes in bytes, by bit number of ExtensionBits.
inline constexpr std::array<std::uint8_t, 8> kExtensionSizes = {8, 16, 28, 4, 4, 4, 8, 16};

/// How many payload bytes an opcode may carry.
enum class PayloadRule : std::uint8_t {
  NONE,         ///< no payload and no pad
  FULL_MTU,     ///< exactly the path MTU (FIRST and MIDDLE)
  ONE_TO_MTU,   ///< 1..MTU (LAST)
  ZERO_TO_MTU,  ///< 0..MTU (ONLY)
};

struct OpcodeInfo {
  std::string_view name;  ///< empty: not an opcode we know
  Transport transport = Transport::RC;
  Operation operation = Operation::SEND;
  Position position = Position::ONLY;
  std::uint8_t extensions = 0;  ///< ExtensionBits
  std::uint8_t extension_bytes = 0;
  PayloadRule payload = PayloadRule::NONE;

  [[nodiscard]] constexpr bool known() const { return !name.empty(); }
  [[nodiscard]] constexpr bool has(ExtensionBits bits) const { return (extensions & bits) != 0; }
  /// True for what a responder sends: ACK, atomic ACK, READ response.
  [[nodiscard]] constexpr bool is_response() const {
    return operation == Operation::ACKNOWLEDGE || operation == Operation::ATOMIC_ACKNOWLEDGE ||
           operation == Operation::RDMA_READ_RESPONSE;
  }
  [[nodiscard]] constexpr bool starts_message() const {
    return position == Position::FIRST || position == Position::ONLY;
  }
  [[nodiscard]] constexpr bool ends_message() const {
    return position == Position::LAST || position == Position::ONLY;
  }
  /// Offset of an extension header behind the BTH; the header must be present.
  [[nodiscard]] constexpr std::size_t offset_of(ExtensionBits bit) const {
    std::size_t offset = 0;
    for (unsigned i = 0; (1u << i) < bit; ++i)
      if (extensions & (1u << i)) offset += kExtensionSizes[i];
    return offset;
  }
};

namespace detail {

struct OpcodeRow {
  Opcode opcode;
  OpcodeInfo info;
};

constexpr std::array<OpcodeInfo, 256> make_opcode_table() {
  using T = Transport;
  using O = Operation;
  using P = Position;
  using R = PayloadRule;
  // clang-format off
  constexpr OpcodeRow rows[] = {
#define ROCE_SEND_WRITE_ROWS(X)                                                                                          \
    {Opcode::X##_SEND_FIRST,                   {#X "_SEND_FIRST",                   T::X, O::SEND,       P::FIRST,  0,              0, R::FULL_MTU}},    \
    {Opcode::X##_SEND_MIDDLE,                  {#X "_SEND_MIDDLE",                  T::X, O::SEND,       P::MIDDLE, 0,              0, R::FULL_MTU}},    \
    {Opcode::X##_SEND_LAST,                    {#X "_SEND_LAST",                    T::X, O::SEND,       P::LAST,   0,              0, R::ONE_TO_MTU}},  \
    {Opcode::X##_SEND_LAST_WITH_IMMEDIATE,     {#X "_SEND_LAST_WITH_IMMEDIATE",     T::X, O::SEND,       P::LAST,   kImmDt,         0, R::ONE_TO_MTU}},  \
    {Opcode::X##_SEND_ONLY,                    {#X "_SEND_ONLY",                    T::X, O::SEND,       P::ONLY,   0,              0, R::ZERO_TO_MTU}}, \
    {Opcode::X##_SEND_ONLY_WITH_IMMEDIATE,     {#X "_SEND_ONLY_WITH_IMMEDIATE",     T::X, O::SEND,       P::ONLY,   kImmDt,         0, R::ZERO_TO_MTU}}, \
    {Opcode::X##_RDMA_WRITE_FIRST,             {#X "_RDMA_WRITE_FIRST",             T::X, O::RDMA_WRITE, P::FIRST,  kReth,          0, R::FULL_MTU}},    \
    {Opcode::X##_RDMA_WRITE_MIDDLE,            {#X "_RDMA_WRITE_MIDDLE",            T::X, O::RDMA_WRITE, P::MIDDLE, 0,              0, R::FULL_MTU}},    \
    {Opcode::X##_RDMA_WRITE_LAST,              {#X "_RDMA_WRITE_LAST",              T::X, O::RDMA_WRITE, P::LAST,   0,              0, R::ONE_TO_MTU}},  \
    {Opcode::X##_RDMA_WRITE_LAST_WITH_IMMEDIATE, {#X "_RDMA_WRITE_LAST_WITH_IMMEDIATE", T::X, O::RDMA_WRITE, P::LAST, kImmDt,       0, R::ONE_TO_MTU}},  \
    {Opcode::X##_RDMA_WRITE_ONLY,              {#X "_RDMA_WRITE_ONLY",              T::X, O::RDMA_WRITE, P::ONLY,   kReth,          0, R::ZERO_TO_MTU}}, \
    {Opcode::X##_RDMA_WRITE_ONLY_WITH_IMMEDIATE, {#X "_RDMA_WRITE_ONLY_WITH_IMMEDIATE", T::X, O::RDMA_WRITE, P::ONLY, kReth | kImmDt, 0, R::ZERO_TO_MTU}},
    ROCE_SEND_WRITE_ROWS(RC)
    ROCE_SEND_WRITE_ROWS(UC)
#undef ROCE_SEND_WRITE_ROWS
    {Opcode::RC_RDMA_READ_REQUEST,         {"RC_RDMA_READ_REQUEST",         T::RC, O::RDMA_READ_REQUEST,  P::ONLY,   kReth, 0, R::NONE}},
    {Opcode::RC_RDMA_READ_RESPONSE_FIRST,  {"RC_RDMA_READ_RESPONSE_FIRST",  T::RC, O::RDMA_READ_RESPONSE, P::FIRST,  kAeth, 0, R::FULL_MTU}},
    {Opcode::RC_RDMA_READ_RESPONSE_MIDDLE, {"RC_RDMA_READ_RESPONSE_MIDDLE", T::RC, O::RDMA_READ_RESPONSE, P::MIDDLE, 0,     0, R::FULL_MTU}},
    {Opcode::RC_RDMA_READ_RESPONSE_LAST,   {"RC_RDMA_READ_RESPONSE_LAST",   T::RC, O::RDMA_READ_RESPONSE, P::LAST,   kAeth, 0, R::ONE_TO_MTU}},
    {Opcode::RC_RDMA_READ_RESPONSE_ONLY,   {"RC_RDMA_READ_RESPONSE_ONLY",   T::RC, O::RDMA_READ_RESPONSE, P::ONLY,   kAeth, 0, R::ZERO_TO_MTU}},
    {Opcode::RC_ACKNOWLEDGE,               {"RC_ACKNOWLEDGE",               T::RC, O::ACKNOWLEDGE,        P::ONLY,   kAeth, 0, R::NONE}},
    {Opcode::RC_ATOMIC_ACKNOWLEDGE,        {"RC_ATOMIC_ACKNOWLEDGE",        T::RC, O::ATOMIC_ACKNOWLEDGE, P::ONLY,   kAeth | kAtomicAckEth, 0, R::NONE}},
    {Opcode::RC_COMPARE_SWAP,              {"RC_COMPARE_SWAP",              T::RC, O::COMPARE_SWAP,       P::ONLY,   kAtomicEth, 0, R::NONE}},
    {Opcode::RC_FETCH_ADD,                 {"RC_FETCH_ADD",                 T::RC, O::FETCH_ADD,          P::ONLY,   kAtomicEth, 0, R::NONE}},
    {Opcode::RC_SEND_LAST_WITH_INVALIDATE, {"RC_SEND_LAST_WITH_INVALIDATE", T::RC, O::SEND,               P::LAST,   kIeth, 0, R::ONE_TO_MTU}},
    {Opcode::RC_SEND_ONLY_WITH_INVALIDATE, {"RC_SEND_ONLY_WITH_INVALIDATE", T::RC, O::SEND,               P::ONLY,   kIeth, 0, R::ZERO_TO_MTU}},
    {Opcode::UD_SEND_ONLY,                 {"UD_SEND_ONLY",                 T::UD, O::SEND,               P::ONLY,   kDeth, 0, R::ZERO_TO_MTU}},
    {Opcode::UD_SEND_ONLY_WITH_IMMEDIATE,  {"UD_SEND_ONLY_WITH_IMMEDIATE",  T::UD, O::SEND,               P::ONLY,   kDeth | kImmDt, 0, R::ZERO_TO_MTU}},
    {Opcode::CNP,                          {"CNP",                          T::CNP, O::CNP,               P::ONLY,   kCnpPadding, 0, R::NONE}},
  };
  // clang-format on
  std::array<OpcodeInfo, 256> table{};
  for (const OpcodeRow& row : rows) {
    OpcodeInfo info = row.info;
    for (unsigned i = 0; i < 8; ++i)
      if (info.extensions & (1u << i))
        info.extension_bytes = static_cast<std::uint8_t>(info.extension_bytes + kExtensionSizes[i]);
    table[static_cast<std::size_t>(row.opcode)] = info;
  }
  return table;
}

}  // namespace detail

/// Indexed by the opcode byte; unknown opcodes have known() == false.
inline constexpr std::array<OpcodeInfo, 256> kOpcodes = detail::make_opcode_table();

[[nodiscard]] constexpr const OpcodeInfo& info_of(Opcode opcode) {
  return kOpcodes[static_cast<std::size_t>(opcode)];
}

}  // namespace roce::wire
