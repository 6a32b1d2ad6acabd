package trace

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/stretchr/testify/require"
)

func allLayouts() []layout {
	var all []command
	all = slices.AppendSeq(all, maps.Values(commands))
	all = slices.AppendSeq(all, maps.Values(exCommands))
	all = slices.AppendSeq(all, maps.Values(ucmCommands))
	var list []layout
	for _, c := range all {
		list = append(list, c.req, c.resp, c.drv)
	}
	list = slices.AppendSeq(list, maps.Values(ucmQueries))
	return slices.DeleteFunc(list, func(l layout) bool { return !l.known() })
}

// TestEveryCommandIsKnown: a command whose structures are in kshim/abi is shown
// by them.
func TestEveryCommandIsKnown(t *testing.T) {
	packages, err := parser.ParseDir(token.NewFileSet(), "../abi", func(i fs.FileInfo) bool { return !strings.HasSuffix(i.Name(), "_test.go") }, 0)
	require.NoError(t, err)
	types, numbers := map[string]bool{}, map[string]bool{}
	for _, f := range packages["abi"].Files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range g.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					types[s.Name.Name] = true
				case *ast.ValueSpec:
					for _, n := range s.Names {
						if name, ok := strings.CutPrefix(n.Name, "Cmd"); ok {
							numbers[name] = true
						}
					}
				}
			}
		}
	}
	byType := map[string]bool{}
	for _, c := range commands {
		for _, l := range []layout{c.req, c.resp} {
			if l.known() {
				byType[reflect.TypeOf(l.make()).Elem().Name()] = true
			}
		}
	}
	checked := 0
	for name := range numbers {
		if !types[name] {
			continue
		}
		require.True(t, byType[name], "abi.Cmd%s takes an abi.%s: say so in the table of commands", name, name)
		if types[name+"Resp"] && name != "PostSend" {
			require.True(t, byType[name+"Resp"], "abi.Cmd%s answers an abi.%sResp: say so in the table of commands", name, name)
		}
		checked++
	}
	require.Greater(t, checked, 15)
}

// TestLayoutsParse: each says its own size.
func TestLayoutsParse(t *testing.T) {
	for _, l := range allLayouts() {
		require.NoError(t, l.make().Parse(make([]byte, l.size)), "%T", l.make())
		require.ErrorIs(t, l.make().Parse(make([]byte, l.size-1)), abi.ErrShort, "%T", l.make())
	}
}

// TestMethodNames holds the ioctl methods' attributes against the recording: the
// names of one method begin alike there, and have these numbers.
func TestMethodNames(t *testing.T) {
	text, err := os.ReadFile("../abi/testdata/layout.golden")
	require.NoError(t, err)
	numbers := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if w := strings.Fields(line); w[0] == "value" && strings.HasPrefix(w[1], "UVERBS_ATTR_") {
			numbers[w[1]] = w[2]
		}
	}
	require.NotEmpty(t, numbers)
	checked := 0
	for _, m := range methods {
		var prefixes map[string]bool // that fit all attributes so far
		for id, a := range m.attrs {
			fit := map[string]bool{}
			for name, number := range numbers {
				if p, ok := strings.CutSuffix(name, strings.ToUpper(a.name)); ok && number == strconv.Itoa(int(id)) && (prefixes == nil || prefixes[p]) {
					fit[p] = true
				}
			}
			prefixes = fit
		}
		if len(m.attrs) > 1 {
			require.NotEmpty(t, prefixes, "%s: no method has these attributes", m.name)
			checked++
		}
	}
	require.Greater(t, checked, 8)
}
