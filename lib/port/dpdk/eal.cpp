#include "port/dpdk/eal.hpp"

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>

#include "port/arguments.hpp"

namespace roce::port::dpdk {
namespace {

/// Receives DPDK's log. It lives until the process ends, as DPDK's threads may log until then.
class Log {
 public:
  void open(EalLog mode) {
    shown_ = mode == EalLog::SHOWN;
    cookie_io_functions_t functions{};
    functions.write = [](void* self, const char* text, size_t size) -> ssize_t {
      static_cast<Log*>(self)->write({text, size});
      return static_cast<ssize_t>(size);
    };
    if (FILE* stream = ::fopencookie(this, "w", functions); stream != nullptr) {
      ::setvbuf(stream, nullptr, _IOLBF, 1024);
      ::rte_openlog_stream(stream);
    }
  }

  LoggedLines take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  void write(std::string_view text) {
    const std::lock_guard lock(mutex_);
    if (shown_) (void)!::write(STDERR_FILENO, text.data(), text.size());
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      while (!line.empty() && (line.back() == '.' || line.back() == ' ')) line.remove_suffix(1);
      if (line.empty()) continue;
      lines_.last = std::string(line);
      if (lines_.first.empty()) lines_.first = lines_.last;
    }
  }

  std::mutex mutex_;
  LoggedLines lines_;
  bool shown_ = false;
};

Log& log() {
  static Log* const log = new Log;
  return *log;
}

/// Of start_eal(); none before.
std::optional<Result<void>>& outcome() {
  static auto* const outcome = new std::optional<Result<void>>;
  return *outcome;
}

bool mentions(const std::vector<std::string>& arguments,
              std::initializer_list<std::string_view> options) {
  for (const std::string& argument : arguments)
    for (const std::string_view option : options)
      if (argument == option || (argument.starts_with(option) &&
                                 (!option.starts_with("--") || argument[option.size()] == '=')))
        return true;
  return false;
}

/// The CPUs this thread may run on, as "0-3,8".
std::string allowed_cpus(const cpu_set_t& set) {
  std::string text;
  for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    std::size_t last = cpu;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set)) ++last;
    text += text.empty() ? "" : ",";
    text += last == cpu ? fmt::format("{}", cpu) : fmt::format("{}-{}", cpu, last);
    cpu = last;
  }
  return text;
}

void end_eal() {
  ::rte_eal_cleanup();
}

Result<void> initialise(const EalOptions& options) {
  cpu_set_t before;
  CPU_ZERO(&before);
  ::sched_getaffinity(0, sizeof before, &before);
  log().open(options.log);

  std::vector<std::string> arguments = eal_arguments(options);
  arguments.insert(arguments.begin(), "rocinante");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const int answer = ::rte_eal_init(static_cast<int>(arguments.size()), argv.data());
  ::sched_setaffinity(0, sizeof before, &before);
  if (answer < 0) {
    const std::string line = take_logged_lines().last;
    return failure("DPDK",
                   fmt::format("its environment does not start ({}{}{})", ::rte_strerror(rte_errno),
                               line.empty() ? "" : ": ", line),
                   "look at the --eal arguments, and at what \"check\" says");
  }
  // Without shared configuration and telemetry it stays empty: leave none behind, even when killed.
  std::error_code ignored;
  std::filesystem::remove(::rte_eal_get_runtime_dir(), ignored);
  std::atexit(end_eal);
  return {};
}

}  // namespace

std::vector<std::string> eal_arguments(const EalOptions& options) {
  const auto& extra = options.extra;
  std::vector<std::string> arguments;
  const auto add = [&](std::string argument) { arguments.push_back(std::move(argument)); };

  if (!mentions(extra, {"-l", "-c", "--lcores"})) {
    cpu_set_t set;
    CPU_ZERO(&set);
    ::sched_getaffinity(0, sizeof set, &set);
    // One lcore, the calling thread, free to run where it could before: pinning is the app's.
    add(fmt::format("--lcores=0@({})", allowed_cpus(set)));
  }
  if (!mentions(extra, {"--no-huge", "--in-memory", "--huge-dir", "--socket-mem"})) {
    if (free_hugepage_bytes() >= kUsefulHugepageBytes) {
      add("--in-memory");  // leaves no files behind
    } else {
      add("--no-huge");  // 22.11 refuses --in-memory beside it
      add("--no-shconf");
      if (!mentions(extra, {"-m"})) add(fmt::format("-m{}", options.memory_mb));
    }
  }
  if (!mentions(extra, {"--file-prefix"})) add(fmt::format("--file-prefix=roce-{}", ::getpid()));
  if (!mentions(extra, {"--telemetry", "--no-telemetry"})) add("--no-telemetry");
  if (!mentions(extra, {"--log-level"}))
    add(options.log == EalLog::SHOWN ? "--log-level=*:info" : "--log-level=*:warning");
  if (!mentions(extra, {"-a", "-b", "--allow", "--block", "--no-pci"})) {
    if (options.pci_addresses.empty()) add("--no-pci");
    for (const std::string& address : options.pci_addresses) add("-a" + address);
  }
  arguments.insert(arguments.end(), extra.begin(), extra.end());
  return arguments;
}

Result<void> start_eal(const EalOptions& options) {
  if (!outcome()) outcome() = initialise(options);
  return *outcome();
}

bool eal_uses_hugepages() {
  return outcome() && outcome()->has_value() && ::rte_eal_has_hugepages() != 0;
}

LoggedLines take_logged_lines() {
  return log().take();
}

void use_thread() {
  struct Registration {
    Registration() : mine(::rte_lcore_id() == LCORE_ID_ANY && ::rte_thread_register() == 0) {}
    ~Registration() {
      if (mine) ::rte_thread_unregister();
    }
    bool mine;
  };
  thread_local const Registration registration;
  (void)registration;
}

}  // namespace roce::port::dpdk
