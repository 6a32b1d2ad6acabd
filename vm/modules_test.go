package vm

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// fakeModule is an ELF file with a section .modinfo, as gcc would make it: the
// header, the section's bytes, the names of sections, the table of sections.
func fakeModule(depends string) []byte {
	info := "license=GPL\x00depends=" + depends + "\x00name=x\x00vermagic=0.0-fake SMP mod_unload \x00"
	names := "\x00.modinfo\x00.shstrtab\x00"
	le := binary.LittleEndian
	b := make([]byte, 64)
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[16:], 1)  // ET_REL
	le.PutUint16(b[18:], 62) // EM_X86_64
	le.PutUint32(b[20:], 1)
	table := (64 + len(info) + len(names) + 7) &^ 7
	le.PutUint64(b[40:], uint64(table))
	le.PutUint16(b[52:], 64) // e_ehsize
	le.PutUint16(b[58:], 64) // e_shentsize
	le.PutUint16(b[60:], 3)  // e_shnum
	le.PutUint16(b[62:], 2)  // e_shstrndx
	b = append(append(b, info...), names...)
	b = append(b, make([]byte, table-len(b)+3*64)...)
	section := func(i, name, kind, at, n int) {
		s := b[table+i*64:]
		le.PutUint32(s, uint32(name))
		le.PutUint32(s[4:], uint32(kind))
		le.PutUint64(s[24:], uint64(at))
		le.PutUint64(s[32:], uint64(n))
		le.PutUint64(s[48:], 1)
	}
	section(1, 1, 1, 64, len(info))             // SHT_PROGBITS
	section(2, 10, 3, 64+len(info), len(names)) // SHT_STRTAB
	return b
}

// fakeModules is a directory of modules like /lib/modules/RELEASE.
func fakeModules(t *testing.T, dir string) string {
	t.Helper()
	dir = filepath.Join(dir, "0.0-fake")
	for _, m := range guestModules {
		depends := map[string]string{"rdma_rxe": "ib_uverbs,ib_core,udp_tunnel", "rdma_ucm": "ib_core,ib_uverbs"}[m]
		putModule(t, dir, "drivers/"+m+".ko", fakeModule(depends))
	}
	putModule(t, dir, "core/ib_core.ko", fakeModule(""))
	putModule(t, dir, "core/ib-uverbs.ko", fakeModule("ib_core")) // files may have dashes
	require.NoError(t, os.WriteFile(filepath.Join(dir, "modules.builtin"), []byte("kernel/net/udp_tunnel.ko\n"), 0o644))
	return dir
}

func putModule(t *testing.T, dir, path string, data []byte) {
	t.Helper()
	path = filepath.Join(dir, "kernel", path)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, data, 0o644))
}

func TestReadModules(t *testing.T) {
	dir := fakeModules(t, t.TempDir())
	set := must.Get(readModules(dir, nil))(t)
	var at []string
	for _, f := range set.files {
		at = append(at, f.path)
	}
	require.Subset(t, at, []string{"kernel/core/ib_core.ko", "kernel/core/ib-uverbs.ko", "kernel/drivers/rdma_rxe.ko"})
	require.NotContains(t, at, "kernel/net/udp_tunnel.ko", "a part of the kernel is not loaded")
	require.Contains(t, string(set.dep), "kernel/drivers/rdma_rxe.ko: kernel/core/ib-uverbs.ko kernel/core/ib_core.ko\n")
	require.Contains(t, string(set.dep), "kernel/core/ib_core.ko:\n")

	_, err := readModules(dir, []string{"nosuch"})
	require.ErrorContains(t, err, "("+filepath.Base(dir)+" has no nosuch)")
}

func TestReadModulesErrors(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *testing.T, dir string)
		want   string
	}{
		{"no directory", func(t *testing.T, dir string) { require.NoError(t, os.RemoveAll(dir)) }, "no such file"},
		{"rxe is missing", func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "kernel/drivers/rdma_rxe.ko")))
		}, "has no rdma_rxe"},
		{"a needed one is missing", func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "kernel/core/ib_core.ko")))
		}, "has no ib_core"},
		{"no ELF", func(t *testing.T, dir string) { putModule(t, dir, "core/ib_core.ko", []byte("text")) }, "ib_core.ko"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := fakeModules(t, t.TempDir())
			c.change(t, dir)
			_, err := readModules(dir, nil)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// xzHello is "hello\n" as xz(1) compressed it.
var xzHello = []byte("\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4F\x02\x00!\x01\x16\x00\x00\x00t/\xe5\xa3\x01\x00\x05hello\n\x00\x00\x00\xa5`\x97\xf1\x94\xf6\xfd\xe0\x00\x01\x1e\x06\xc1/\xa4\x1d\x1f\xb6\xf3}\x01\x00\x00\x00\x00\x04YZ")

func TestDecompress(t *testing.T) {
	var gz, zst bytes.Buffer
	w := gzip.NewWriter(&gz)
	w.Write([]byte("hello\n"))
	require.NoError(t, w.Close())
	z := must.Get(zstd.NewWriter(&zst))(t)
	z.Write([]byte("hello\n"))
	require.NoError(t, z.Close())
	for ext, data := range map[string][]byte{"": []byte("hello\n"), ".ko": []byte("hello\n"), ".gz": gz.Bytes(), ".zst": zst.Bytes(), ".xz": xzHello} {
		got, err := decompress(bytes.NewReader(data), ext)
		require.NoError(t, err, ext)
		require.Equal(t, "hello\n", string(got), ext)
		if len(ext) > 1 && ext != ".ko" {
			_, err = decompress(bytes.NewReader(data[:len(data)/2]), ext)
			require.Error(t, err, ext)
		}
	}
}

func TestNameOfModule(t *testing.T) {
	for path, want := range map[string]string{
		"a/b/rdma_rxe.ko": "rdma_rxe", "ib-core.ko.xz": "ib_core", "x.ko.zst": "x", "x.ko.gz": "x",
		"x.ko.sig": "", "modules.dep": "", "x": "",
	} {
		name, ok := nameOfModule(path)
		require.Equal(t, want, name, path)
		require.Equal(t, want != "", ok, path)
	}
}

func TestModuleInfo(t *testing.T) {
	whole := fakeModule("a,b-c")
	m := must.Get(moduleInfo(whole))(t)
	require.Equal(t, info{needs: []string{"a", "b_c"}, release: "0.0-fake"}, m)
	for n := range len(whole) - 64*3 {
		_, err := moduleInfo(whole[:n])
		require.Error(t, err, "cut to %d bytes", n)
	}
}

// TestReadModulesLoad: a module that is asked for comes with the algorithms
// that its softdep names, before it.
func TestReadModulesLoad(t *testing.T) {
	dir := fakeModules(t, t.TempDir())
	putModule(t, dir, "fs/ext4.ko", fakeModule("\x00softdep=pre: crypto-crc32c none post: late"))
	putModule(t, dir, "crypto/crc32c_generic.ko", fakeModule(""))
	set := must.Get(readModules(dir, []string{"ext4"}))(t)
	require.Contains(t, string(set.dep), "kernel/fs/ext4.ko: kernel/crypto/crc32c_generic.ko\n")

	_, err := readModules(dir, []string{"nvme_rdma"})
	require.ErrorAs(t, err, new(*MissingError))
	require.ErrorContains(t, err, "no module nvme_rdma")
	require.ErrorContains(t, err, "linux-image-amd64")
}

func FuzzModuleInfo(f *testing.F) {
	f.Add(fakeModule("a,b"))
	f.Fuzz(func(t *testing.T, b []byte) { moduleInfo(b) })
}
