#include "verbs/memory.hpp"

#include <rapidcheck.h>
#include <rapidcheck/catch.h>

#include <set>

using namespace roce::verbs;
using Outcome = KeyCheck::Outcome;

namespace {

constexpr std::uint8_t kLocalWrite = ACCESS_LOCAL_WRITE;
constexpr std::uint8_t kAll =
    ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC;
constexpr std::uint64_t kTop = ~std::uint64_t{0};

struct Fixture {
  std::vector<std::byte> memory = std::vector<std::byte>(4096);
  MemoryTable table{16};
  Pd pd = table.alloc_pd();
  MemoryRegion reg(std::uint64_t iova, std::uint8_t access = kAll) {
    return table.reg_mr(pd, memory, iova, access).value();
  }
};

}  // namespace

namespace Catch {
template <>
struct StringMaker<Outcome> {
  static std::string convert(Outcome outcome) {
    constexpr const char* kNames[] = {"OK", "BAD_KEY", "WRONG_PD", "NO_ACCESS", "OUT_OF_RANGE"};
    return kNames[static_cast<std::size_t>(outcome)];
  }
};
}  // namespace Catch

TEST_CASE("A check hands out the bytes that the address names", "[verbs][memory]") {
  Fixture f;
  const auto mr = f.reg(0x7000);
  CHECK(mr.addr == 0x7000);
  CHECK(mr.length == 4096);
  CHECK(mr.lkey == mr.rkey);
  const auto check = f.table.check(mr.rkey, f.pd, 0x7010, 16, ACCESS_REMOTE_WRITE);
  REQUIRE(check.ok());
  CHECK(check.host == f.memory.data() + 0x10);
  const auto own = f.table.reg_mr(f.pd, f.memory, kLocalWrite).value();
  CHECK(own.addr == reinterpret_cast<std::uintptr_t>(f.memory.data()));
}

TEST_CASE("A check fails for the first of key, domain, access and range that is wrong",
          "[verbs][memory]") {
  Fixture f;
  const auto mr = f.reg(0x7000, ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ);
  const auto check = [&](std::uint32_t key, Pd pd, std::uint64_t va, std::uint64_t length,
                         std::uint8_t access) {
    const auto result = f.table.check(key, pd, va, length, access);
    CHECK(result.ok() == (result.host != nullptr));
    return result.outcome;
  };
  const Pd other = f.table.alloc_pd();
  CHECK_FALSE(other == f.pd);
  CHECK(check(mr.rkey, f.pd, 0x7000, 4096, ACCESS_REMOTE_READ) == Outcome::OK);
  CHECK(check(mr.rkey, f.pd, 0x7000, 4096, 0) == Outcome::OK);
  CHECK(check(mr.rkey ^ 1, other, 0, 0, ACCESS_REMOTE_WRITE) == Outcome::BAD_KEY);
  CHECK(check(mr.rkey + 0x100, f.pd, 0x7000, 1, 0) == Outcome::BAD_KEY);
  CHECK(check(0, f.pd, 0x7000, 1, 0) == Outcome::BAD_KEY);
  CHECK(check(0xffff'ffff, f.pd, 0x7000, 1, 0) == Outcome::BAD_KEY);
  CHECK(check(mr.rkey, other, 0, 0, ACCESS_REMOTE_WRITE) == Outcome::WRONG_PD);
  CHECK(check(mr.rkey, f.pd, 0, 0, ACCESS_REMOTE_WRITE) == Outcome::NO_ACCESS);
  CHECK(check(mr.rkey, f.pd, 0x7000, 1, ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC) ==
        Outcome::NO_ACCESS);
  CHECK(check(mr.rkey, f.pd, 0x6fff, 1, 0) == Outcome::OUT_OF_RANGE);
  CHECK(check(mr.rkey, f.pd, 0x7000, 4097, 0) == Outcome::OUT_OF_RANGE);
  CHECK(check(mr.rkey, f.pd, 0x7fff, 1, 0) == Outcome::OK);
  CHECK(check(mr.rkey, f.pd, 0x8000, 1, 0) == Outcome::OUT_OF_RANGE);
  CHECK(check(mr.rkey, f.pd, 0x8000, 0, 0) == Outcome::OK);
  CHECK(check(mr.rkey, f.pd, 0x8001, 0, 0) == Outcome::OUT_OF_RANGE);
}

TEST_CASE("Ranges that wrap past 2^64 never pass", "[verbs][memory]") {
  Fixture f;
  const auto high = f.reg(kTop - 4095);  // the region's last byte is at 2^64 - 1
  const auto outcome = [&](std::uint64_t va, std::uint64_t length) {
    return f.table.check(high.rkey, f.pd, va, length, 0).outcome;
  };
  CHECK(outcome(kTop, 1) == Outcome::OK);
  CHECK(outcome(kTop - 4095, 4096) == Outcome::OK);
  CHECK(outcome(kTop, 2) == Outcome::OUT_OF_RANGE);
  CHECK(outcome(kTop - 1, kTop) == Outcome::OUT_OF_RANGE);
  CHECK(outcome(0, 1) == Outcome::OUT_OF_RANGE);
  CHECK(outcome(kTop - 4096, 1) == Outcome::OUT_OF_RANGE);
  CHECK_FALSE(f.table.reg_mr(f.pd, f.memory, kTop - 4094, kAll));
  const auto low = f.reg(0);
  CHECK(f.table.check(low.rkey, f.pd, kTop, 2, 0).outcome == Outcome::OUT_OF_RANGE);
  CHECK(f.table.check(low.rkey, f.pd, 0, kTop, 0).outcome == Outcome::OUT_OF_RANGE);
}

TEST_CASE("A check passes exactly when the range lies in the region", "[verbs][memory][property]") {
  rc::prop("against 128-bit arithmetic", [] {
    __extension__ using Wide = unsigned __int128;
    std::vector<std::byte> memory(*rc::gen::inRange<std::size_t>(1, 5000));
    MemoryTable table(1, *rc::gen::arbitrary<std::uint64_t>());
    const Pd pd = table.alloc_pd();
    const std::uint64_t anchor = *rc::gen::element<std::uint64_t>(0, 0x10000, kTop - 4999);
    const auto mr = table.reg_mr(pd, memory, anchor, kLocalWrite);
    RC_PRE(mr.has_value());
    // Near the ends of the region, where mistakes live.
    const std::uint64_t edge = *rc::gen::element<std::uint64_t>(0, memory.size(), kTop);
    const std::uint64_t va = anchor + edge + *rc::gen::inRange<std::uint64_t>(0, 10) - 5;
    const std::uint64_t length =
        *rc::gen::element<std::uint64_t>(0, 1, memory.size(), kTop - va, kTop - 1) +
        *rc::gen::inRange<std::uint64_t>(0, 3) - 1;
    const bool inside =
        va >= anchor && Wide{va} + length <= Wide{anchor} + static_cast<Wide>(memory.size());
    const auto check = table.check(mr->lkey, pd, va, length, 0);
    RC_ASSERT(check.outcome == (inside ? Outcome::OK : Outcome::OUT_OF_RANGE));
    if (inside) RC_ASSERT(check.host == memory.data() + (va - anchor));
  });
}

TEST_CASE("Registration refuses what verbs refuses", "[verbs][memory]") {
  Fixture f;
  CHECK_FALSE(f.table.reg_mr(f.pd, {}, 0, kAll));
  CHECK_FALSE(f.table.reg_mr(f.pd, f.memory, 0, ACCESS_REMOTE_WRITE));
  CHECK_FALSE(f.table.reg_mr(f.pd, f.memory, 0, ACCESS_REMOTE_ATOMIC));
  CHECK(f.table.reg_mr(f.pd, f.memory, 0, ACCESS_REMOTE_READ));
  CHECK(f.table.reg_mr(f.pd, f.memory, 0, 0));
  MemoryTable small(2);
  const Pd pd = small.alloc_pd();
  CHECK(small.reg_mr(pd, f.memory, 0, 0));
  const auto second = small.reg_mr(pd, f.memory, 0, 0);
  CHECK(second);
  const auto third = small.reg_mr(pd, f.memory, 0, 0);
  REQUIRE_FALSE(third);
  CHECK_FALSE(third.error().fix.empty());
  CHECK(small.dereg_mr(second->lkey));
  CHECK(small.reg_mr(pd, f.memory, 0, 0));
}

TEST_CASE("The key of a region that is gone stays dead for 255 successors", "[verbs][memory]") {
  for (const std::uint64_t seed : {1u, 2u, 99u}) {
    Fixture f;
    MemoryTable table(1, seed);
    std::set<std::uint32_t> seen;
    for (int i = 0; i < 256; ++i) {
      const auto mr = table.reg_mr(f.pd, f.memory, 0, 0).value();
      CHECK(mr.rkey > 0xff);
      CHECK(seen.insert(mr.rkey).second);
      for (const std::uint32_t key : seen)
        CHECK(table.check(key, f.pd, 0, 1, 0).ok() == (key == mr.rkey));
      CHECK(table.dereg_mr(mr.lkey));
      CHECK_FALSE(table.dereg_mr(mr.lkey));
    }
  }
}

TEST_CASE("Keys repeat with the seed and differ without it", "[verbs][memory]") {
  Fixture f;
  const auto keys = [&](std::uint64_t seed) {
    MemoryTable table(64, seed);
    std::vector<std::uint32_t> list;
    for (int i = 0; i < 64; ++i) list.push_back(table.reg_mr(f.pd, f.memory, 0, 0)->rkey);
    return list;
  };
  CHECK(keys(1) == keys(1));
  CHECK(keys(1) != keys(2));
}

TEST_CASE("Unknown keys cannot be deregistered", "[verbs][memory]") {
  Fixture f;
  const auto mr = f.reg(0);
  for (const std::uint32_t key : {0u, 1u, mr.rkey ^ 1u, mr.rkey + 0x100, 0xffff'ff00u})
    CHECK_FALSE(f.table.dereg_mr(key));
  CHECK(f.table.dereg_mr(mr.rkey));
}

TEST_CASE("SEND_WITH_INV kills only regions of its domain that allow it", "[verbs][memory]") {
  Fixture f;
  const Pd other = f.table.alloc_pd();
  const auto refused = f.reg(0);
  const auto allowed = f.table.reg_mr(f.pd, f.memory, 0, kAll, RemoteInvalidate::ALLOW).value();
  CHECK_FALSE(f.table.invalidate(refused.rkey, f.pd));
  CHECK_FALSE(f.table.invalidate(allowed.rkey, other));
  CHECK_FALSE(f.table.invalidate(allowed.rkey ^ 1, f.pd));
  CHECK(f.table.check(allowed.rkey, f.pd, 0, 1, 0).ok());
  CHECK(f.table.invalidate(allowed.rkey, f.pd));
  CHECK(f.table.check(allowed.rkey, f.pd, 0, 1, 0).outcome == Outcome::BAD_KEY);
  CHECK_FALSE(f.table.invalidate(allowed.rkey, f.pd));
  CHECK(f.table.dereg_mr(allowed.lkey));  // its owner still has to give it back
  CHECK(f.table.check(refused.rkey, f.pd, 0, 1, 0).ok());
}
