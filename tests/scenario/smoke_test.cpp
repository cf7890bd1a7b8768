// Every operation without faults: what the pair judges is right when nothing goes wrong.
#include <catch2/catch.hpp>

#include "support/pair/pair.hpp"

using namespace roce;
using namespace roce::test;

TEST_CASE("every operation of every length completes on a perfect wire", "[scenario]") {
  for (const Kind kind : kKinds)
    for (const std::uint32_t length : {0u, 1u, 3u, 255u, 256u, 257u, 512u, 2300u})
      for (const std::uint32_t pieces : {1u, 2u, 4u}) {
        PairConfig config;
        config.trace = true;
        config.psn_a = Psn{0xfffffe};
        Pair pair{config};
        PostOptions options;
        options.pieces = is_atomic(kind) ? 1 : pieces;
        options.solicited = true;
        for (int i = 0; i < 3; ++i) {
          if (takes_receive(kind)) pair.post_receive(Way::A_TO_B, length);
          pair.post(Way::A_TO_B, kind, length, options);
        }
        pair.run();
        pair.expect_all_done();
        INFO(name_of(kind) << " of " << length << " bytes");
        REQUIRE(pair.verdict() == "");
        CHECK(pair.a.counters.retransmitted_packets == 0);
      }
}
