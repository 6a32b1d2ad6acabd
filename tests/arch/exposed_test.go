package arch

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// TestPromisesStandAlone: all that a program reaches through the exported names
// of v1's packages, by fields, methods, parameters and results, is of a type of
// v1, of the standard library, or of the language. Another type could change
// without v1 changing.
func TestPromisesStandAlone(t *testing.T) {
	e := exposure{t: t, seen: map[types.Type]bool{}}
	for _, pkg := range promised(t, "v1") {
		e.promised = append(e.promised, module+"/"+pkg)
	}
	lib := compiled(t, e.promised)
	for _, pkg := range e.promised {
		scope := must.Get(lib.Import(pkg))(t).Scope()
		for _, name := range scope.Names() {
			if o := scope.Lookup(name); o.Exported() {
				e.visit(pkg+"."+name, o.Type())
			}
		}
	}
	for _, known := range []string{"uapi.Device", "uapi/rdmanet.Conn", "uapi/stats.Device"} {
		require.True(t, slices.ContainsFunc(e.named, func(n string) bool { return n == module+"/"+known }), "the walk does not come to %s", known)
	}
}

// compiled imports packages from what the compiler exports of them.
func compiled(t *testing.T, packages []string) types.Importer {
	t.Helper()
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}, packages...)...)
	list.Stderr = os.Stderr
	out := must.Get(list.Output())(t)
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		pkg, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[pkg] = file
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(pkg string) (io.ReadCloser, error) { return os.Open(files[pkg]) })
}

// exposure walks the types that programs can reach.
type exposure struct {
	t        *testing.T
	promised []string // import paths
	seen     map[types.Type]bool
	named    []string
}

// visit walks a type, which path leads to.
func (e *exposure) visit(path string, typ types.Type) {
	typ = types.Unalias(typ)
	if e.seen[typ] {
		return
	}
	e.seen[typ] = true
	switch typ := typ.(type) {
	case *types.Named:
		e.visitNamed(path, typ)
	case *types.Struct:
		for f := range typ.Fields() {
			if f.Exported() || f.Embedded() {
				e.visit(path+"."+f.Name(), f.Type())
			}
		}
	case *types.Interface:
		for m := range typ.Methods() {
			if m.Exported() {
				e.visit(path+"."+m.Name(), m.Type())
			}
		}
		for embedded := range typ.EmbeddedTypes() {
			e.visit(path, embedded)
		}
	case *types.Signature:
		for p := range typ.TypeParams().TypeParams() {
			e.visit(path, p.Constraint())
		}
		for v := range typ.Params().Variables() {
			e.visit(path, v.Type())
		}
		for v := range typ.Results().Variables() {
			e.visit(path, v.Type())
		}
	case *types.Map:
		e.visit(path, typ.Key())
		e.visit(path, typ.Elem())
	case interface{ Elem() types.Type }: // pointer, slice, array, channel
		e.visit(path, typ.Elem())
	case *types.Basic, *types.TypeParam:
	default:
		e.t.Errorf("%s: no rule for %T", path, typ)
	}
}

// visitNamed holds that a type is of an allowed package, and walks it if it is
// of one of v1.
func (e *exposure) visitNamed(path string, typ *types.Named) {
	for arg := range typ.TypeArgs().Types() {
		e.visit(path, arg)
	}
	if typ.Obj().Pkg() == nil { // error, comparable
		return
	}
	pkg := typ.Obj().Pkg().Path()
	if !slices.Contains(e.promised, pkg) {
		if first, _, _ := strings.Cut(pkg, "/"); strings.Contains(first, ".") {
			e.t.Errorf("%s leads to %v, which v1 does not promise", strings.TrimPrefix(path, module+"/"), typ)
		}
		return
	}
	e.named = append(e.named, fmt.Sprint(typ))
	e.visit(path, typ.Underlying())
	for m := range types.NewMethodSet(types.NewPointer(typ)).Methods() {
		if m.Obj().Exported() {
			e.visit(path+"."+m.Obj().Name(), m.Type())
		}
	}
}
