// SIGINT and SIGTERM as a flag that loops look at. A second signal ends the program at once.
#pragma once

#include <atomic>

namespace roce::apps {

/// Installs the handlers.
void catch_stop_signals();
[[nodiscard]] bool stop_requested();

}  // namespace roce::apps
