// Eal: DPDK's environment, started once per process and ended at exit. No rte_* shows here.
//
// Started by the first port that needs it. Works with and without hugepages, beside other
// processes, and leaves the caller's CPU affinity as it was.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace roce::port::dpdk {

enum class EalLog : std::uint8_t {
  QUIET,  ///< kept to explain failures, not shown
  SHOWN,  ///< on stderr as well
};

struct EalOptions {
  std::vector<std::string> pci_addresses;  ///< to probe; empty leaves the PCI bus alone
  std::vector<std::string> extra;          ///< passed on; wins over what we would choose
  std::uint32_t memory_mb = 512;           ///< bound, when there are no hugepages
  EalLog log = EalLog::QUIET;
};

/// The first call starts EAL on the calling thread; later ones only answer how that went, their
/// options have no effect. Not thread-safe.
[[nodiscard]] Result<void> start_eal(const EalOptions& options);

/// What start_eal() would pass to rte_eal_init(), without the program's name.
[[nodiscard]] std::vector<std::string> eal_arguments(const EalOptions& options);

/// Whether EAL runs on hugepages; false before start_eal().
[[nodiscard]] bool eal_uses_hugepages();

/// What DPDK logged since the last call, for error messages. A driver names the cause first; EAL
/// names it last.
struct LoggedLines {
  std::string first, last;  ///< may be empty
};
[[nodiscard]] LoggedLines take_logged_lines();

/// Gives the calling thread an lcore id, so that it has buffer caches of its own. Cheap after the
/// first call of a thread.
void use_thread();

}  // namespace roce::port::dpdk
