package arch

import (
	"bytes"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// TestRoomsOfTests: only a test, a package below tests, and a package whose
// name ends in test imports testing; planted mistakes are rows of tests.
func TestRoomsOfTests(t *testing.T) {
	for _, s := range sources(t) {
		room := s.test || strings.HasPrefix(s.path, "tests/") || strings.HasSuffix(s.pkg, "test")
		if !room && (contains(s.imports, "testing") || strings.HasPrefix(path.Base(s.path), "plant")) {
			t.Errorf("%s is for tests, and %s is a package of the product", s.path, s.pkg)
		}
	}
}

// places are facts that one file of the product states, each by words that a
// second statement would need.
var places = []struct{ fact, words, file string }{
	{"splitmix64", "0xbf58476d1ce4e5b9", "rnic/splitmix/doc.go"},
	{"the files of a GID table", `"/gid_attrs/types/"`, "kshim/gidtable/table.go"},
	{"the room around a path MTU", "eth_mtu_int_to_enum", "kshim/abi/port.go"},
	{"a command's layouts", "of[RegMR](", "kshim/abi/schema_command.go"},
	{"a method's attributes", `"QUERY_GID_TABLE"`, "kshim/abi/schema_method.go"},
}

func TestOnePlace(t *testing.T) {
	found := map[string][]string{}
	for _, s := range sources(t) {
		text := must.Get(os.ReadFile(filepath.Join(root, s.path)))(t)
		for _, p := range places {
			if !s.test && bytes.Contains(text, []byte(p.words)) {
				found[p.fact] = append(found[p.fact], s.path)
			}
		}
	}
	for _, p := range places {
		require.Equal(t, []string{p.file}, found[p.fact], "%s stands in one place", p.fact)
	}
}

// foundingStyle are the package functions of uapi that use the default device
// themselves: the calls of the founding document and what its style needs.
const foundingStyle = "ConnectOver ConnectQP CreateQP Default DeregMR DestroyQP LocalEndpoint PollCQ " +
	"PostRead PostRecv PostSend PostWrite QueryMR RegMR WaitCQ"

func TestFoundingStyle(t *testing.T) {
	var found []string
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || s.test || s.pkg != "uapi" || f.Recv != nil || !f.Name.IsExported() {
				continue
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && contains([]string{"Default", "defaultDevice", "onDefault"}, id.Name) {
					found = append(found, f.Name.Name)
				}
				return true
			})
		}
	}
	require.ElementsMatch(t, strings.Fields(foundingStyle), found, "all other calls are methods of a Device")
}

// TestRequirements: each program that imports uapi has all modules of go.mod in
// its list, and builds the standard library and x/sys alone. uapi/rpc has the
// interfaces of gRPC, and so its modules; quicudp is quic-go.
func TestRequirements(t *testing.T) {
	text := must.Get(os.ReadFile(filepath.Join(root, "go.mod")))(t)
	require.LessOrEqual(t, len(regexp.MustCompile(`(?m)^\t\S+ v`).FindAll(text, -1)), 31)
	gRPC := regexp.MustCompile(`^google\.golang\.org/(grpc|protobuf|genproto/googleapis/rpc)(/|$)`)
	require.NotContains(t, string(text), "\ntool ", "u-root's commands are in vm/uroot.mod")
	for _, s := range sources(t) {
		top, _, _ := strings.Cut(s.pkg, "/")
		for _, name := range s.imports {
			first, _, _ := strings.Cut(name, "/")
			_, own := ours(name)
			own = own || s.pkg == "uapi/rpc" && gRPC.MatchString(name) ||
				s.pkg == "uapi/registration/quicudp" && strings.HasPrefix(name, "github.com/quic-go/quic-go")
			if !s.test && contains([]string{"uapi", "kshim", "rnic"}, top) && strings.Contains(first, ".") && !own && !strings.HasPrefix(name, "golang.org/x/sys/") {
				t.Errorf("%s imports %s: what stands behind uapi has the standard library and x/sys", s.path, name)
			}
		}
	}
}

// TestLightDependencies: what stands on net.Conn stands on uapi and not beneath
// it. A program that imports uapi, rdmanet or qmux builds none of its modules.
func TestLightDependencies(t *testing.T) {
	imports := map[string][]string{}
	for _, s := range sources(t) {
		if !s.test {
			imports[s.pkg] = append(imports[s.pkg], s.imports...)
		}
	}
	pending, reached := []string{"uapi", "uapi/rdmanet", "uapi/qmux", "uapi/registration"}, map[string]bool{}
	for len(pending) > 0 {
		pkg := pending[0]
		pending = pending[1:]
		if reached[pkg] {
			continue
		}
		reached[pkg] = true
		for _, name := range imports[pkg] {
			for _, heavy := range []string{"google.golang.org/", "github.com/quic-go/"} {
				if strings.HasPrefix(name, heavy) {
					t.Errorf("%s imports %s, and programs that import uapi would build it", pkg, name)
				}
			}
			if own, ok := ours(name); ok {
				pending = append(pending, own)
			}
		}
	}
	for _, pkg := range []string{"uapi/msgring", "uapi/qmux/wire", "rnic/engine"} {
		require.True(t, reached[pkg], "the rule does not reach %s", pkg)
	}
}

// requirement is a line of a go.mod file.
var requirement = regexp.MustCompile(`(?m)^\t(\S+) (v\S+)`)

// TestNestedModules: modules below tests replace this one by the tree, and
// build only while they require no older version of a module than this one.
func TestNestedModules(t *testing.T) {
	versions := map[string]string{}
	for _, dir := range []string{"", "tests/grpc", "tests/nfs"} {
		text := must.Get(os.ReadFile(filepath.Join(root, dir, "go.mod")))(t)
		for _, m := range requirement.FindAllStringSubmatch(string(text), -1) {
			switch least := versions[m[1]]; {
			case dir == "":
				versions[m[1]] = m[2]
			case least != "" && slices.Compare(numbers(m[2]), numbers(least)) < 0:
				t.Errorf("%s requires %s %s, and the module above it %s; run 'go mod tidy' in %[1]s", dir, m[1], m[2], least)
			}
		}
	}
}

// numbers are those of a version, in its order.
func numbers(version string) (n []int) {
	for digits := range strings.FieldsFuncSeq(version, func(r rune) bool { return !unicode.IsDigit(r) }) {
		v, _ := strconv.Atoi(digits)
		n = append(n, v)
	}
	return n
}

// TestShortPages: the two pages to begin with stay short.
func TestShortPages(t *testing.T) {
	for name, most := range map[string]int{"README.md": 150, "ARCHITECTURE.md": 220} {
		text := must.Get(os.ReadFile(filepath.Join(root, name)))(t)
		require.LessOrEqual(t, bytes.Count(text, []byte("\n")), most, "lines of %s; docs has room", name)
	}
}

// TestShortPackages: the root of uapi is the calls that programs make; their
// parts have packages of their own below uapi/internal. Readers of the sample
// of NVMe over RDMA learn the API from it; its dissector is a small one.
func TestShortPackages(t *testing.T) {
	most := map[string]struct{ files, lines int }{
		"uapi": {40, 7400}, "tools/rdmashim/sample/nvme": {12, 1400}, "tools/rdmashim/dump/nvme.go": {1, 250},
	}
	files, lines := map[string]int{}, map[string]int{}
	for _, s := range sources(t) {
		if !s.test {
			text := must.Get(os.ReadFile(filepath.Join(root, s.path)))(t)
			for _, at := range []string{s.pkg, s.path} {
				files[at]++
				lines[at] += bytes.Count(text, []byte("\n"))
			}
		}
	}
	for at, most := range most {
		require.NotZero(t, files[at], at)
		require.LessOrEqual(t, files[at], most.files, "files of %s", at)
		require.LessOrEqual(t, lines[at], most.lines, "lines of %s", at)
	}
}
