// gradwire data: public data sets from a server of this test, which can misbehave.
#include <algorithm>
#include <gtest/gtest.h>
#include <set>

#include "tests/support/data_files.h"
#include "tests/support/process.h"
#include "tests/support/test_data.h"

namespace gradwire {
namespace {

namespace fs = std::filesystem;

// GET /HOW/NAME serves served/NAME. HOW says how the server behaves:
//   good     supports ranges
//   norange  ignores ranges
//   cut      sends half of the requested bytes and closes the connection
//   stuck    sends half of the requested bytes and then nothing
//   wrong    sends another range than the requested one
//   moved    redirects to a local file
constexpr const char* kDataServer = R"(
import http.server, os, socketserver, time

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        _, how, name = self.path.split("/", 2)
        asked = self.headers.get("Range")
        with open("requests", "a") as log:
            log.write(how + " " + name + " " + (asked or "all") + "\n")
        path = os.path.join("served", name)
        if how == "moved" or not os.path.exists(path):
            self.send_response(302 if how == "moved" else 404)
            self.send_header("Location", "file://" + os.path.abspath(path))
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = open(path, "rb").read()
        first = int(asked[6:-1]) if asked and how != "norange" else 0
        if first and first >= len(body):
            self.send_response(416)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if first else 200)
        if first:
            shown = first + (1 if how == "wrong" else 0)
            self.send_header("Content-Range", "bytes %d-%d/%d" % (shown, len(body) - 1, len(body)))
        rest = body[first:]
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest[: len(rest) // 2] if how in ("cut", "stuck") else rest)
        self.wfile.flush()
        if how == "stuck":
            time.sleep(600)
        self.close_connection = how == "cut"

    def log_message(self, *arguments):
        pass

socketserver.ThreadingTCPServer.daemon_threads = True
server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
with open("port.new", "w") as out:
    out.write(str(server.server_address[1]))
os.rename("port.new", "port")
server.serve_forever()
)";

class DataFetch : public ::testing::Test {
 protected:
  void SetUp() override {
    if (run_gradwire(path(), {"data", "fetch", "a9a", "--mirror", "http://127.0.0.1:1"})
            .err.find("built without") != std::string::npos)
      GTEST_SKIP() << "built without libcurl";
    folder_.write("server.py", kDataServer);
    fs::create_directories(path() / "served");
    server_.emplace("/usr/bin/env", std::vector<std::string>{"python3", "server.py"}, path() / "server.log");
    for (int k = 0; k < 1000 && !fs::exists(path() / "port"); ++k) usleep(10'000);
    ASSERT_TRUE(fs::exists(path() / "port")) << server_->log();
    url_ = "http://127.0.0.1:" + read_file(path() / "port");
    folder_.write("plain/ijcnn1", text(1));
    folder_.write("plain/ijcnn1.t", text(2));
    pack();
  }
  static std::string text(int seed) {
    std::string lines;
    for (std::int64_t k = 0; k < 20'000; ++k)
      lines += std::to_string(1 - k % 2 * 2) + " 1:" + std::to_string(seed * k * k % 1009) +
               " 3:" + std::to_string(seed + k) + "\n";
    return lines;
  }
  void pack() {
    const std::string script =
        "import bz2\nfor n in ['ijcnn1', 'ijcnn1.t']: open('served/' + n + '.bz2', 'wb').write("
        "bz2.compress(open('plain/' + n, 'rb').read()))\n";
    folder_.write("pack.py", script);
    ASSERT_EQ(std::system(("cd '" + path().string() + "' && python3 pack.py").c_str()), 0);
  }
  ProgramResult fetch(const std::string& name, const std::string& how) {
    return run_gradwire(path(), {"data", "fetch", name, "--mirror", url_ + "/" + how});
  }
  // Returns the names of the files in the cache.
  std::set<std::string> cached() const {
    std::set<std::string> names;
    if (fs::exists(cache() / "data"))
      for (const auto& entry : fs::directory_iterator(cache() / "data"))
        names.insert(entry.path().filename().string());
    return names;
  }
  void expect_whole() const {
    EXPECT_EQ(cached(), (std::set<std::string>{"ijcnn1", "ijcnn1.sha256", "ijcnn1.t", "ijcnn1.t.sha256"}));
    EXPECT_EQ(read_file(cache() / "data/ijcnn1"), text(1));
    EXPECT_EQ(read_file(cache() / "data/ijcnn1.t"), text(2));
  }
  // Expects exit code 1, and one line on stderr that contains `said`.
  static void expect_failure(const ProgramResult& r, const std::string& said) {
    EXPECT_EQ(r.code, 1) << r.out;
    EXPECT_EQ(lines_of(r.err).size(), 1u) << r.err;
    EXPECT_NE(r.err.find(said), std::string::npos) << r.err;
    EXPECT_NE(r.err.find("; by hand: put https://"), std::string::npos) << r.err;
  }
  std::vector<std::string> requests() const { return lines_of(read_file(path() / "requests")); }
  const fs::path& path() const { return folder_.path(); }
  fs::path cache() const { return path() / "cache"; }

  TemporaryFolder folder_;
  ScopedEnvironment cache_variable_{"GRADWIRE_CACHE", cache().c_str()};
  ScopedEnvironment data_variable_{"GRADWIRE_DATA", nullptr};
  std::optional<Process> server_;
  std::string url_;
};

TEST_F(DataFetch, FetchesUnpacksAndKeepsTheChecksum) {
  EXPECT_NE(run_gradwire(path(), {"data", "list"}).out.find("data = \"libsvm:ijcnn1\""), std::string::npos);
  const auto r = fetch("ijcnn1", "good");
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(lines_of(r.out).size(), 2u) << r.out;
  EXPECT_NE(r.out.find("its checksum was not known"), std::string::npos) << r.out;
  expect_whole();
  EXPECT_EQ(
      std::system(("cd '" + (cache() / "data").string() + "' && sha256sum --status -c *.sha256").c_str()), 0);
  const auto again = fetch("ijcnn1", "good");
  EXPECT_EQ(again.code, 0);
  EXPECT_NE(again.out.find("ijcnn1: exists already, "), std::string::npos) << again.out;
  EXPECT_EQ(requests().size(), 2u) << "nothing is downloaded twice";
  const std::string list = run_gradwire(path(), {"data", "list"}).out;
  EXPECT_NE(list.find("here, " + (cache() / "data/ijcnn1").string()), std::string::npos) << list;
}

TEST_F(DataFetch, FetchesFilesThatAnExperimentFinds) {
  folder_.write(
      "a.toml",
      "[problem]\nkind = \"logistic\"\ndata = \"libsvm:ijcnn1\"\ntest = \"libsvm:ijcnn1.t\"\n[algorithm]\n"
      "name = \"gd\"\nstep_size = 0.1\n[run]\nrounds = 1\n");
  const auto before = run_gradwire(path(), {"run", "a.toml"});
  EXPECT_EQ(before.code, 2);
  EXPECT_NE(before.err.find((cache() / "data/ijcnn1").string()), std::string::npos) << before.err;
  EXPECT_NE(before.err.find("gradwire data fetch"), std::string::npos) << before.err;
  ASSERT_EQ(fetch("ijcnn1", "good").code, 0);
  const auto r = run_gradwire(path(), {"run", "a.toml", "--quiet"});
  EXPECT_EQ(r.code, 0) << r.err;
}

TEST_F(DataFetch, AcceptsTheNamesOfDataSetsAsSources) {
  folder_.write("m.toml",
                "[problem]\nkind = \"mlp\"\ndata = \"mnist\"\n[algorithm]\nname = \"gd\"\nstep_size = 0.1\n");
  EXPECT_NE(run_gradwire(path(), {"run", "m.toml"}).err.find("data 'mnist' not found"), std::string::npos);
  folder_.write(
      "s.toml",
      "[problem]\nkind = \"gpt\"\ndata = \"shakespeare\"\n[algorithm]\nname = \"gd\"\nstep_size = 0.1\n");
  EXPECT_NE(run_gradwire(path(), {"run", "s.toml"}).err.find("data 'tinyshakespeare.txt' not found"),
            std::string::npos);
}

TEST_F(DataFetch, ContinuesAnInterruptedDownload) {
  expect_failure(fetch("ijcnn1", "cut"), "/cut/ijcnn1.bz2: ");
  EXPECT_EQ(cached(), std::set<std::string>{"ijcnn1.part"});
  const auto half = fs::file_size(cache() / "data/ijcnn1.part");
  EXPECT_EQ(half, fs::file_size(path() / "served/ijcnn1.bz2") / 2);
  expect_failure(fetch("ijcnn1", "wrong"), "the requested range");
  EXPECT_EQ(fs::file_size(cache() / "data/ijcnn1.part"), half);
  const auto r = fetch("ijcnn1", "good");
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("ijcnn1: continues after " + std::to_string(half) + " bytes"), std::string::npos)
      << r.out;
  EXPECT_EQ(requests().at(2), "good ijcnn1.bz2 bytes=" + std::to_string(half) + "-");
  expect_whole();
}

TEST_F(DataFetch, StartsOverIfTheServerDoesNotSupportRanges) {
  EXPECT_EQ(fetch("ijcnn1", "cut").code, 1);
  ASSERT_EQ(fetch("ijcnn1", "norange").code, 0);
  expect_whole();
}

TEST_F(DataFetch, StartsOverIfThePartIsFromAnotherFile) {
  const std::string packed = read_file(path() / "served/ijcnn1.bz2");
  for (const std::size_t size : {std::size_t{100}, packed.size(), packed.size() + 100}) {
    folder_.write("cache/data/ijcnn1.part", std::string(size, 'x'));
    const auto r = fetch("ijcnn1", "good");
    ASSERT_EQ(r.code, 0) << r.err;
    EXPECT_NE(r.out.find("starting over"), std::string::npos) << r.out;
    expect_whole();
    fs::remove_all(cache());
  }
  folder_.write("cache/data/ijcnn1.part", packed);  // complete, but never unpacked
  ASSERT_EQ(fetch("ijcnn1", "good").code, 0);
  expect_whole();
}

TEST_F(DataFetch, LeavesOnlyAPartIfItIsKilled) {
  Process running("gradwire", {"data", "fetch", "ijcnn1", "--mirror", url_ + "/stuck"}, path() / "log");
  for (int k = 0; k < 1000 && (cached().empty() || fs::file_size(cache() / "data/ijcnn1.part") == 0); ++k)
    usleep(10'000);
  expect_failure(fetch("ijcnn1", "good"), "another process fetches it");
  running.kill(SIGKILL);
  running.wait();
  EXPECT_EQ(cached(), std::set<std::string>{"ijcnn1.part"});
  ASSERT_EQ(fetch("ijcnn1", "good").code, 0);
  expect_whole();
}

TEST_F(DataFetch, RejectsFilesWithAnotherChecksum) {
  folder_.write("served/a9a", "+1 1:1\n");
  expect_failure(fetch("a9a", "good"), "the download has the checksum");
  EXPECT_EQ(cached(), std::set<std::string>());
  folder_.write("cache/data/a9a", "+1 1:1\n");
  expect_failure(fetch("a9a", "good"), "exists with the checksum");
  EXPECT_EQ(read_file(cache() / "data/a9a"), "+1 1:1\n") << "a user's file stays";

  ASSERT_EQ(fetch("ijcnn1", "good").code, 0);
  fs::remove(cache() / "data/ijcnn1");
  folder_.write("plain/ijcnn1", text(7));
  pack();
  expect_failure(fetch("ijcnn1", "good"), "the download has the checksum");
  EXPECT_FALSE(fs::exists(cache() / "data/ijcnn1"));
}

TEST_F(DataFetch, RefusesADamagedFile) {
  std::string packed = read_file(path() / "served/ijcnn1.bz2");
  for (const std::string& served :
       {packed.substr(0, packed.size() / 2), std::string("<html>sorry</html>"), std::string()}) {
    folder_.write("served/ijcnn1.bz2", served);
    expect_failure(fetch("ijcnn1", "good"), "bzip2");
    EXPECT_EQ(cached(), std::set<std::string>());
  }
  packed[packed.size() / 2] ^= 1;
  folder_.write("served/ijcnn1.bz2", packed);
  expect_failure(fetch("ijcnn1", "good"), "damaged");
  EXPECT_EQ(cached(), std::set<std::string>());
}

TEST_F(DataFetch, SaysWhereToPutTheFileIfTheDownloadFails) {
  const std::string where = (cache() / "data/a9a").string() + ", or as a9a into a folder of $GRADWIRE_DATA";
  for (const std::string& mirror : {std::string("http://127.0.0.1:1"), url_ + "/good", url_ + "/moved"}) {
    const auto r = run_gradwire(path(), {"data", "fetch", "a9a", "--mirror", mirror});
    expect_failure(r, where);
    EXPECT_EQ(cached(), std::set<std::string>()) << mirror;
  }
  expect_failure(run_gradwire(path(), {"data", "fetch", "mnist", "--mirror", "http://127.0.0.1:1"}),
                 "data/mnist/train-images");
  EXPECT_EQ(cached(), std::set<std::string>()) << "an empty folder would be taken for the data";
  folder_.write("file", "");
  const ScopedEnvironment no_folder("GRADWIRE_CACHE", (path() / "file").c_str());
  expect_failure(fetch("ijcnn1", "good"), "file/data");
}

TEST_F(DataFetch, RejectsBadUsageInOneLine) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"data"},
                                             {"data", "fetch"},
                                             {"data", "fetch", "a8a"},
                                             {"data", "fetch", "a9a", "--mirror", "file:///etc"},
                                             {"data", "push"}}) {
    const auto r = run_gradwire(path(), arguments);
    EXPECT_EQ(r.code, 2) << r.err;
    EXPECT_EQ(lines_of(r.err).size(), 1u) << r.err;
  }
  EXPECT_NE(run_gradwire(path(), {"data", "fetch", "phising"}).err.find("did you mean 'phishing'?"),
            std::string::npos);
  EXPECT_EQ(cached(), std::set<std::string>());
}

TEST_F(DataFetch, HasTheChecksumsOfTheOriginals) {
  if (!test_data("phishing")) GTEST_SKIP() << "no phishing: set GRADWIRE_TEST_DATA";
  for (const char* name : {"a1a", "a9a", "australian", "mushrooms", "phishing", "w8a"}) {
    for (const std::string& file : {std::string(name), name + std::string(".t")})
      if (const auto original = test_data(file)) fs::copy_file(*original, path() / "served" / file);
    if (!fs::exists(path() / "served" / name)) continue;
    const auto r = fetch(name, "good");
    EXPECT_EQ(r.code, 0) << r.err;
  }
}

}  // namespace
}  // namespace gradwire
