package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/vm/vmtest"
)

// A page of docs is read as a reader with a shell reads it, from its first
// block to its last, in a directory of its own that has the checkout as
// rdmashim. A block's language says what becomes of it:
//
//	sh               run here; the directory that it ends in is the next one's
//	sh guest         run as root in a guest with rxe0, one for all pages
//	sh boots         run here, but where not all is run (package amount): it boots a
//	                 guest, as a test of vm and tools/rdmashim/vm does
//	sh elsewhere     run by the test that docElsewhere names for each line
//	text             what the block before it prints; … stands for anything within a
//	                 line, and for any lines where it is alone on one
//	text figures     so, and every number stands for any number
//	go FILE, c FILE  written to FILE, for the blocks that come after it
//	make FILE, python FILE, yaml FILE  read by TestPage of tests/programs and
//	                 TestContainerFiles
type docBlock struct {
	page, language, argument string
	line                     int // in the page
	text                     string
}

func (b docBlock) String() string { return fmt.Sprintf("docs/%s:%d", b.page, b.line) }

var docFence = regexp.MustCompile("(?ms)^```(\\w+) ?([^\n]*)\n(.*?)^```$")

// docElsewhere has the commands that do not end by themselves, or take long,
// and the tests that run them: a function of a file, or a line of a script.
var docElsewhere = map[string]string{
	"tools/bench suite --rounds 3 --run '^registration' --markdown":                      "tools/lab/suite_test.go:TestSuiteTransports",
	"rdmashim sample quic server":                                                        "tools/rdmashim/echo/sample_test.go:TestSample",
	"rdmashim sample quic client 127.0.0.1 --on 'soft?loss=1%,tcp,udp'":                  "tools/rdmashim/echo/sample_test.go:TestSample",
	"rdmashim stats --listen 127.0.0.1:9400":                                             "tools/rdmashim/top_test.go:TestStatsListen",
	"rdmashim run -- rdma link show":                                                     "tests/programs/netlink_linux_test.go:TestRDMA",
	"rdmashim run -- rdma resource show qp":                                              "tests/programs/netlink_linux_test.go:TestRDMA",
	"rdmashim run -- ibv_devinfo -v":                                                     "tests/programs/programs_linux_test.go:TestDevinfo",
	"rdmashim run -d soft:127.0.0.5 -- ibv_rc_pingpong -g 0":                             "tests/programs/programs_linux_test.go:TestPingpong",
	"rdmashim run -d soft:127.0.0.6 -- ibv_rc_pingpong -g 0 127.0.0.5":                   "tests/programs/programs_linux_test.go:TestPingpong",
	"export UCX_TLS=rc_v,self UCX_NET_DEVICES=rxe0:1 UCX_UD_VERBS_ETH_DGID_CHECK=n":      "tests/programs/middleware_linux_test.go:TestUCX",
	"rdmashim run -- ucx_perftest -t tag_bw":                                             "tests/programs/middleware_linux_test.go:TestUCX",
	"rdmashim run -- ucx_perftest -t tag_bw 127.0.0.1":                                   "tests/programs/middleware_linux_test.go:TestUCX",
	"mpirun --mca pml ucx -np 2 rdmashim run -- ./a.out":                                 "tests/programs/middleware_linux_test.go:TestMPI",
	"MPIR_CVAR_NOLOCAL=1 mpirun.mpich -np 2 rdmashim run -- ./a.out":                     "tests/programs/middleware_linux_test.go:TestRanks",
	"rdmashim run -d soft:127.0.0.5 -- qemu-system-x86_64 -incoming rdma:127.0.0.5:4444": "tests/programs/migration_linux_test.go:TestMigration",
	"rdmashim run -d soft:127.0.0.6 -- qemu-system-x86_64 -monitor stdio":                "tests/programs/migration_linux_test.go:TestMigration",
	"rdmashim run -d soft:10.0.0.1 -- fi_pingpong -p verbs -e msg":                       "tests/programs/middleware_linux_test.go:TestLibfabric",
	"rdmashim run -d soft:10.0.0.2 -- fi_pingpong -p verbs -e msg 10.0.0.1":              "tests/programs/middleware_linux_test.go:TestLibfabric",
	"apt-get install -y gcc libc6-dev make libibverbs-dev":                               "tests/programs/docs_linux_test.go:TestPage",
	"git clone https://github.com/rdmashim/rdmashim":                                     "tests/programs/docs_linux_test.go:TestPage",
	"(cd rdmashim && go install ./tools/rdmashim)":                                       "tests/programs/docs_linux_test.go:TestPage",
	"make && rdmashim run -- ./test":                                                     "tests/programs/docs_linux_test.go:TestPage",

	"rdmashim monitor -j":                              "netlinkmgr/guesttest/monitor_test.go:TestMonitor",
	"rdmashim dump --live lo -w live.pcapng --summary": "tools/rdmashim/dump/live_linux_test.go:TestDumpLive",
	"rdmashim bridge x1 y1 --fault 'drop op=READ_RESPONSE_* nth=3' --pcap left.pcapng": "tools/rdmashim/bridge/bridge_linux_test.go:TestBridge",
	"rdmashim server":                                                                            "tools/rdmashim/server_test.go:TestServerAndClient",
	"rdmashim client 127.0.0.1 FILE":                                                             "tools/rdmashim/server_test.go:TestServerAndClient",
	"rdmashim sample write-read server --once":                                                   "tools/rdmashim/sample_test.go:TestSamples",
	"rdmashim sample write-read client 127.0.0.1":                                                "tools/rdmashim/sample_test.go:TestSamples",
	"rdmashim sample write-imm server":                                                           "tools/rdmashim/sample_test.go:TestSampleServesMany",
	"rdmashim sample write-imm client 127.0.0.1":                                                 "tools/rdmashim/sample_test.go:TestSampleServesMany",
	"rdmashim sample nvme serve disk.img 64M":                                                    "tools/rdmashim/sample/nvme/command_test.go:TestCommands",
	"rdmashim sample nvme host 127.0.0.1 --verify --bytes 16M":                                   "tools/rdmashim/sample/nvme/command_test.go:TestCommands",
	"rdmashim sample nvme host 127.0.0.1 --queues 2 --time 1s":                                   "tools/rdmashim/sample/nvme/command_test.go:TestCommands",
	"rdmashim vm run --memory 1G --module nvme_rdma,nvmet_rdma,brd,ext4 -- ls /dev/nvme-fabrics": "tests/guest/nvme_test.go:TestNVMe",
	"go -C tests/nfs run . --device soft:192.0.2.7 /srv/files":                                   "tests/nfs/guest_test.go:TestGuest",
	"rdmashim sample counter client --loss 5%":                                                   "tools/rdmashim/sample/command_test.go:TestCounter",
	"rdmashim sample counter client --chaos":                                                     "tools/rdmashim/sample/command_test.go:TestCounter",
	"rdmashim sample counter client --kill":                                                      "tools/rdmashim/sample/command_test.go:TestCounter",

	"./tools/test":                         ".ci/run:exec ./tools/test",
	"./tools/test --no-install ./rnic/...": "tools/test:--no-install) install=no",
	"./tools/test --all":                   "tools/test:all=${CI:-false}",
	"go test ./rnic/wire":                  "tools/test:packages=(./...)",
	"go test ./tests/arch":                 "tools/test:packages=(./...)",
	"go tool -modfile=tools/check.mod staticcheck -tags guest,engine,newer ./...": "tools/test:go tool -modfile=tools/check.mod staticcheck -tags guest,engine,newer ./...",
	"go tool -modfile=tools/check.mod deadcode -test -tags guest ./...":           "tools/test:go tool -modfile=tools/check.mod deadcode -test -tags guest ./...",
	"tools/bench --run 'Write/1MiB'":                                              "tools/lab/bench_linux_test.go:TestBenchRows",
	"go test -run - -bench . ./tools/lab/rawudp":                                  "tools/bench:./tools/lab/rawudp",
	"git tag -a v0.2.0 -m 'rdmashim 0.2.0'":                                       "tools/rdmashim/version_test.go:TestVersionOfTag",
	"go run ./tools/release -o dist v0.2.0":                                       "tools/release/release_test.go:TestRelease",

	"rdmashim echo server --over qmux":           "tools/rdmashim/echo/client_test.go:TestClient",
	"rdmashim echo client 127.0.0.1 --over qmux": "tools/rdmashim/echo/client_test.go:TestClient",
	"rdmashim ping server":                       "tools/rdmashim/sample_test.go:TestSampleServesMany",
	"rdmashim ping client 127.0.0.1":             "tools/rdmashim/sample_test.go:TestSampleServesMany",
	"rdmashim echo server":                       "tools/rdmashim/echo/client_test.go:TestClient",
	"rdmashim echo client 127.0.0.1":             "tools/rdmashim/echo/client_test.go:TestClient",
	"rdmashim echo server --over tcp":            "tools/rdmashim/echo/client_test.go:TestClient",
	"rdmashim echo client 127.0.0.1 --over tcp":  "tools/rdmashim/echo/client_test.go:TestClient",
	"rdmashim vm demo":                           "tools/rdmashim/vm_demo_test.go:TestVMDemo",
	"rdmashim vm demo --mixed":                   "tools/rdmashim/vm_demo_test.go:TestVMDemo",
	"go mod tidy":                                "tests/grpc/docs_test.go:TestDocumentedPrograms",
	"go run health.go":                           "tests/grpc/docs_test.go:TestDocumentedPrograms",
	"rdmashim vm build -o image":                 "tools/rdmashim/vm/command_linux_test.go:TestBuild",
	"rdmashim vm run -- rdmashim link show":      "tools/rdmashim/perf_guest_linux_test.go:TestOnRxe",

	"rdmashim capi install --prefix ~/.local":                                                "uapi/capi/peers_linux_test.go:TestHello",
	"export PKG_CONFIG_PATH=~/.local/lib/pkgconfig":                                          "uapi/capi/peers_linux_test.go:TestHello",
	"cc -o hello hello.c $(pkg-config --cflags --libs rdmashim) -Wl,-rpath,$HOME/.local/lib": "uapi/capi/peers_linux_test.go:TestHello",
	"./hello 7480":           "uapi/capi/peers_linux_test.go:TestHello",
	"./hello 7480 127.0.0.1": "uapi/capi/peers_linux_test.go:TestHello",
}

// docBlocks are the fenced blocks of all pages, by page.
func docBlocks(t *testing.T) map[string][]docBlock {
	t.Helper()
	paths := must.Get(filepath.Glob(filepath.Join(repository, "docs", "*.md")))(t)
	require.NotEmpty(t, paths)
	pages := map[string][]docBlock{}
	for _, path := range paths {
		text, page := string(readFile(t, path)), filepath.Base(path)
		for _, at := range docFence.FindAllStringSubmatchIndex(text, -1) {
			pages[page] = append(pages[page], docBlock{
				page: page, language: text[at[2]:at[3]], argument: text[at[4]:at[5]],
				line: 1 + strings.Count(text[:at[0]], "\n"), text: text[at[6]:at[7]],
			})
		}
		require.Equal(t, 2*len(pages[page]), strings.Count("\n"+text, "\n```"), "%s has a fence without a language or an end", page)
	}
	return pages
}

// matchesDoc says whether output is as a block of text shows it. Lines after the
// block's last and columns' widths do not count.
func matchesDoc(shown, output string, figures bool) bool {
	var re strings.Builder
	re.WriteString(`\A`)
	for line := range strings.Lines(shown) {
		if line = strings.TrimSpace(line); line == "…" {
			re.WriteString(`(?s:.*?)`)
			continue
		}
		re.WriteString(`[ \t]*`)
		for i, word := range strings.Fields(line) {
			if i > 0 {
				re.WriteString(`[ \t]+`)
			}
			word = regexp.QuoteMeta(word)
			if figures {
				word = docNumber.ReplaceAllString(word, `[0-9.]+`)
			}
			re.WriteString(strings.ReplaceAll(word, "…", `[^\n]*?`))
		}
		re.WriteString(`[ \t]*\n`)
	}
	return regexp.MustCompile(re.String() + `\s*\z`).MatchString(output)
}

var docNumber = regexp.MustCompile(`[0-9]+(\\\.[0-9]+)?`) // quoted by QuoteMeta

func TestMatchesDoc(t *testing.T) {
	for _, c := range []struct {
		shown, output string
		figures, want bool
	}{
		{"a b\n", "a   b\n", false, true},
		{"a b\n", "a b\nc\n", false, false},
		{"a b\n…\n", "a b\nc\n", false, true},
		{"…\nz\n", "a\nb\nz\n", false, true},
		{"a …, z\n", "a b c, z\n", false, true},
		{"a …\n", "a b\nc\n", false, false},
		{"in 1.5 ms\n", "in 27.03 ms\n", false, false},
		{"in 1.5 ms\n", "in 27.03 ms\n", true, true},
		{"in 1.5 ms\n", "in 27.03 us\n", true, false},
		{"a.c\n", "abc\n", false, false},
	} {
		require.Equal(t, c.want, matchesDoc(c.shown, c.output, c.figures), "%q, %q", c.shown, c.output)
	}
}

// portNotice is a soft device's notice where there are many: other tests have
// theirs.
var portNotice = regexp.MustCompile(`(?m)^.*UDP port 4791 is taken on every loopback address.*\n`)

// docOutput compares what a block printed with what the page shows after it.
func docOutput(t *testing.T, shown docBlock, output string) {
	t.Helper()
	if shown.language == "text" {
		output = portNotice.ReplaceAllString(output, "")
		require.True(t, matchesDoc(shown.text, output, shown.argument == "figures"), "%s shows\n%s\nand the commands print\n%s", shown, shown.text, output)
	}
}

// TestDocElsewhere: a block that is said to be run by another test is on a
// page.
func TestDocElsewhere(t *testing.T) {
	shown := ""
	for _, blocks := range docBlocks(t) {
		for _, b := range blocks {
			if b.language == "sh" && b.argument == "elsewhere" {
				shown += "\n" + b.text
			}
		}
	}
	for command := range docElsewhere {
		require.Contains(t, shown, "\n"+command+"\n", "no page has it any more")
	}
}

// TestDocAddresses: no two pages, which are run at the same time, have devices
// at one address.
func TestDocAddresses(t *testing.T) {
	address := regexp.MustCompile(`127\.1\.\d+\.\d+`)
	pages := map[string]string{}
	for page, blocks := range docBlocks(t) {
		for _, b := range blocks {
			for _, a := range address.FindAllString(b.text, -1) {
				require.Contains(t, []string{"", page}, pages[a], "%s: %s", b, a)
				pages[a] = page
			}
		}
	}
	require.NotEmpty(t, pages)
}

// TestDocs runs the pages' blocks that run here.
func TestDocs(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves out the pages, whose commands have tests of their own; run it without -short")
	}
	for page, blocks := range docBlocks(t) {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			s := docSession{top: t.TempDir()}
			s.start(t, page == "guide.md")
			for i, b := range blocks {
				switch {
				case b.language == "go" || b.language == "c":
					require.NotEmpty(t, b.argument, "%s names no file", b)
					require.NoError(t, os.WriteFile(filepath.Join(s.dir, b.argument), []byte(b.text), 0o644))
				case slices.Contains([]string{"make", "python", "yaml"}, b.language) && b.argument != "": // they have tests of their own
				case b.language == "text" && (b.argument == "" || b.argument == "figures"):
					require.True(t, i > 0 && blocks[i-1].language == "sh", "%s follows no command", b)
				case b.language == "sh" && b.argument == "elsewhere":
					ranElsewhere(t, b)
				case b.language == "sh" && b.argument == "guest": // docsInGuest
				case b.language == "sh" && b.argument == "boots" && !amount.All():
				case b.language == "sh" && (b.argument == "" || b.argument == "boots"):
					out := s.run(t, b)
					if i+1 < len(blocks) {
						docOutput(t, blocks[i+1], out)
					}
				default:
					t.Errorf("%s: no test knows what ```%s %s is", b, b.language, b.argument)
				}
			}
		})
	}
}

// ranElsewhere holds that each command of a block has a test, which is there.
func ranElsewhere(t *testing.T, b docBlock) {
	t.Helper()
	for line := range strings.Lines(b.text) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "  #")
		test := docElsewhere[line]
		require.NotEmpty(t, test, "%s: no test is known to run: %s", b, line)
		file, name, _ := strings.Cut(test, ":")
		if strings.HasSuffix(file, "_test.go") {
			name = "\nfunc " + name + "(t *testing.T)"
		} // else a script, which has that line
		require.Contains(t, string(readFile(t, filepath.Join(repository, file))), name, "%s: %s", b, line)
	}
}

// docSession is a reader's shell.
type docSession struct {
	top string // where the reader began
	dir string // where the reader is
}

// start makes a reader's surroundings: the checkout, the command (except for a
// reader of the guide), and the module that the guide made.
func (s *docSession) start(t *testing.T, guide bool) {
	t.Helper()
	checkout := must.Get(filepath.Abs(repository))(t)
	require.NoError(t, os.Symlink(checkout, filepath.Join(s.top, "rdmashim")))
	s.dir = s.top
	if guide {
		return
	}
	self := must.Get(os.Executable())(t)
	require.NoError(t, os.Mkdir(filepath.Join(s.top, "bin"), 0o755))
	require.NoError(t, os.Symlink(self, filepath.Join(s.top, "bin", "rdmashim")))
	s.dir = filepath.Join(s.top, "first")
	require.NoError(t, os.Mkdir(s.dir, 0o755))
	_, requires, _ := strings.Cut(string(readFile(t, filepath.Join(repository, "go.mod"))), "\n")
	const module = "github.com/rdmashim/rdmashim"
	mod := "module example.org/first\n" + requires + "\nrequire " + module + " v0.0.0\n\nreplace " + module + " => ../rdmashim\n"
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "go.mod"), []byte(mod), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "go.sum"), readFile(t, filepath.Join(repository, "go.sum")), 0o644))
}

// run runs a block and returns what it printed.
func (s *docSession) run(t *testing.T, b docBlock) string {
	t.Helper()
	if strings.Contains(b.text, "go ") {
		if _, err := exec.LookPath("go"); err != nil {
			t.Skip("no go command on PATH for the programs of docs; install Go")
		}
	}
	if b.argument == "boots" {
		vmtest.Config(t) // or a skip that says what is missing
	}
	where := filepath.Join(s.top, "where")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "set -e\n"+b.text+"\npwd >\""+where+"\"\n")
	cmd.Dir = s.dir
	bin := filepath.Join(s.top, "bin")
	cmd.Env = append(os.Environ(), asTool+"=1", "RDMASHIM_DEVICE=", "GORACE=atexit_sleep_ms=0", "PATH="+bin+":"+os.Getenv("PATH"),
		"PWD="+s.dir, "GOBIN="+bin, "GOWORK=off", "GOPROXY=off", "GOSUMDB=off",
		"GOFLAGS=-trimpath", "CGO_ENABLED=0") // so that what one page compiled the next need not: each has a directory of its own
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second // for what a block that failed left running
	began := time.Now()
	out, err := cmd.CombinedOutput()
	t.Logf("%s took %v", b, time.Since(began).Round(time.Millisecond))
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	require.NoError(t, err, "%s\n%s\nprinted:\n%s", b, b.text, out)
	s.dir = strings.TrimSpace(string(readFile(t, where)))
	return string(out)
}

// docsInGuest is the part of the pages' blocks that need a kernel's device.
func docsInGuest(t *testing.T, dir string) guestPart {
	var part guestPart
	var ran, shown []docBlock
	for page, blocks := range docBlocks(t) {
		for i, b := range blocks {
			if b.language != "sh" || b.argument != "guest" {
				continue
			}
			name := fmt.Sprintf("docs%d", len(ran))
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("set -e\n"+b.text), 0o644))
			part.script += fmt.Sprintf("mkdir -p /docs/%s && cd /docs/%[1]s && sh /in/%s >/out/%[2]s.text 2>&1\necho $? >/out/%[2]s.status\n", page, name)
			ran, shown = append(ran, b), append(shown, docBlock{})
			if i+1 < len(blocks) {
				shown[len(shown)-1] = blocks[i+1]
			}
		}
	}
	require.NotEmpty(t, ran)
	part.check = func(t *testing.T, out string) {
		for i, b := range ran {
			t.Run(fmt.Sprintf("%s:%d", b.page, b.line), func(t *testing.T) {
				file := filepath.Join(out, fmt.Sprintf("docs%d", i))
				text := string(readFile(t, file+".text"))
				require.Equal(t, "0\n", string(readFile(t, file+".status")), "%s\n%s\nprinted:\n%s", b, b.text, text)
				docOutput(t, shown[i], text)
			})
		}
	}
	return part
}
