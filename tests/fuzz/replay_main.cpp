// Replays a corpus through a fuzz target without libFuzzer, so that every compiler runs it as a
// test.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  int played = 0;
  for (int i = 1; i < argc; ++i)
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream file{entry.path(), std::ios::binary};
      const std::vector<char> bytes{std::istreambuf_iterator<char>{file}, {}};
      std::printf("%s\n", entry.path().filename().c_str());
      std::fflush(stdout);  // so that the last name is the one that broke it
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
      ++played;
    }
  std::printf("test cases: %d passed, 0 failed, 0 skipped\n", played);
  return played > 0 ? 0 : 1;
}
