// roce-gen trace-rp: the command around traffic/trace_rp.hpp. Called by roce-gen's main().
#pragma once

#include <string>
#include <vector>

namespace roce::apps {

/// arguments: what stands behind "trace-rp". Returns the exit code: 0 done, 2 usage or a file that
/// is wrong.
[[nodiscard]] int trace_rp_command(const std::vector<std::string>& arguments);
/// The same from main()'s arguments: argv[0] is "trace-rp".
[[nodiscard]] int trace_rp_command(int argc, char** argv);

}  // namespace roce::apps
