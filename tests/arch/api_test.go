package arch

import (
	"flag"
	"go/ast"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

var update = flag.Bool("update", false, "write testdata/api.txt anew")

// promised returns the packages that docs/stability.md puts in a class.
func promised(t *testing.T, class string) (packages []string) {
	page := must.Get(os.ReadFile(filepath.Join(root, "docs/stability.md")))(t)
	for _, row := range regexp.MustCompile(`(?m)^\| `+class+` \| (.*) \| .* \|$`).FindAllStringSubmatch(string(page), -1) {
		for _, m := range quoted.FindAllStringSubmatch(row[1], -1) {
			if pathLike(m[1]) && exists(m[1]) {
				packages = append(packages, m[1])
			}
		}
	}
	require.NotEmpty(t, packages, class)
	return packages
}

// TestPromises: each package that a program may import is named by
// docs/stability.md in one class, or lies below one that is.
func TestPromises(t *testing.T) {
	classes := map[string]int{}
	for _, class := range []string{"v1", "experimental", "internal"} {
		for _, pkg := range promised(t, class) {
			classes[pkg]++
		}
	}
	for pkg, n := range classes {
		require.Equal(t, 1, n, "classes of %s", pkg)
	}
	named := func(pkg string) bool {
		for ; pkg != "."; pkg = filepath.Dir(pkg) {
			// uapi is one package: those below it are named one by one.
			if classes[pkg] > 0 && pkg != "uapi" {
				return true
			}
		}
		return false
	}
	for _, s := range sources(t) {
		if s.pkg != "uapi" && !named(s.pkg) {
			t.Errorf("docs/stability.md does not say what %s promises", s.pkg)
		}
	}
}

// TestPublicAPI holds the exported names of the packages that docs/stability.md
// calls v1 against testdata/api.txt. A line that has to go from there, or to
// change, breaks programs, which docs/CHANGELOG.md has to tell.
func TestPublicAPI(t *testing.T) {
	var have []string
	for _, pkg := range promised(t, "v1") {
		have = append(have, exported(t, pkg)...)
	}
	const file = "testdata/api.txt"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(have, "\n")+"\n"), 0o666))
	}
	text := must.Get(os.ReadFile(file))(t)
	want := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for _, line := range want {
		if !slices.Contains(have, line) {
			t.Errorf("programs may use what has gone: %s", line)
		}
	}
	for _, line := range have {
		if !slices.Contains(want, line) {
			t.Errorf("new, so record it by go test ./tests/arch -run TestPublicAPI -update: %s", line)
		}
	}
}

// exported returns a line for each exported function, method, type, field,
// variable and constant of a package, sorted.
func exported(t *testing.T, pkg string) (lines []string) {
	add := func(line string) { lines = append(lines, pkg+": "+line) }
	for _, s := range sources(t) {
		if s.pkg != pkg || s.test {
			continue
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
					signature := &ast.FuncType{TypeParams: d.Type.TypeParams, Params: unnamed(d.Type.Params), Results: unnamed(d.Type.Results)}
					add(text(&ast.FuncDecl{Recv: unnamed(d.Recv), Name: d.Name, Type: signature}))
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							if name.IsExported() {
								add(d.Tok.String() + " " + name.Name)
							}
						}
					case *ast.TypeSpec:
						if spec.Name.IsExported() {
							for _, line := range typeLines(t, s, spec) {
								add("type " + spec.Name.Name + line)
							}
						}
					}
				}
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines) // files of several systems declare the same
}

// typeLines says what a type is: each exported field or method of it, also
// where it is another name of a type of this module.
func typeLines(t *testing.T, s source, spec *ast.TypeSpec) (lines []string) {
	switch x := spec.Type.(type) {
	case *ast.StructType:
		lines = append(lines, " struct")
		for _, f := range x.Fields.List {
			for _, name := range f.Names {
				if name.IsExported() {
					lines = append(lines, "."+name.Name+" "+text(f.Type))
				}
			}
			if f.Names == nil {
				lines = append(lines, "."+text(f.Type))
			}
		}
	case *ast.SelectorExpr:
		lines = append(lines, " = "+text(x))
		for _, name := range s.imports {
			pkg, own := ours(name)
			if !own || !strings.HasSuffix("/"+pkg, "/"+text(x.X)) {
				continue
			}
			for _, line := range exported(t, pkg) {
				_, line, _ = strings.Cut(line, ": ")
				if rest, ok := strings.CutPrefix(line, "type "+x.Sel.Name+"."); ok {
					lines = append(lines, "."+rest)
				}
			}
		}
	default:
		lines = append(lines, " "+text(x))
	}
	return lines
}

// receiver names the type of a method.
func receiver(d *ast.FuncDecl) string {
	expr := d.Recv.List[0].Type
	if star, ok := expr.(*ast.StarExpr); ok {
		expr = star.X
	}
	if index, ok := expr.(*ast.IndexExpr); ok {
		expr = index.X
	}
	return expr.(*ast.Ident).Name
}

// unnamed returns parameters or results without their names, which may change.
func unnamed(list *ast.FieldList) *ast.FieldList {
	if list == nil {
		return nil
	}
	types := &ast.FieldList{}
	for _, f := range list.List {
		for range max(1, len(f.Names)) {
			types.List = append(types.List, &ast.Field{Type: f.Type})
		}
	}
	return types
}

// text is a piece of source on one line.
func text(node ast.Node) string {
	var b strings.Builder
	if err := printer.Fprint(&b, token.NewFileSet(), node); err != nil {
		panic(err)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func exists(pkg string) bool {
	_, err := os.Stat(filepath.Join(root, filepath.FromSlash(pkg)))
	return err == nil
}
