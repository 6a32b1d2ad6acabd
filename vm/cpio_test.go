package vm

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/u-root/mkuimage/cpio"
)

// readCPIO reads archives that follow each other, with u-root's reader.
func readCPIO(t *testing.T, data []byte) map[string]cpio.Record {
	t.Helper()
	files := map[string]cpio.Record{}
	for len(bytes.Trim(data, "\x00")) > 0 {
		r := cpio.Newc.Reader(bytes.NewReader(data))
		records, err := cpio.ReadAllRecords(r)
		require.NoError(t, err)
		for _, rec := range records {
			files[rec.Name] = rec
		}
		end := bytes.Index(data, []byte("TRAILER!!!\x00"))
		require.Positive(t, end)
		data = data[end+11:]
		next := bytes.Index(data, []byte("070701"))
		if next < 0 {
			break
		}
		data = data[next:]
	}
	return files
}

func TestWriteCPIO(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, writeCPIO(&b, []cpioEntry{
		{"/usr/bin/tool", modeFile | 0o755, []byte("12345")},
		{"bin/sh", modeLink | 0o777, []byte("../usr/bin/tool")},
		{"a", modeFile | 0o600, nil},
	}))
	require.Zero(t, b.Len()%4)
	files := readCPIO(t, b.Bytes())
	require.Len(t, files, 6)
	content := func(name string) string {
		text, err := io.ReadAll(io.NewSectionReader(files[name].ReaderAt, 0, int64(files[name].FileSize)))
		require.NoError(t, err)
		return fmt.Sprintf("%o %s", files[name].Mode, text)
	}
	require.Equal(t, "100755 12345", content("usr/bin/tool"))
	require.Equal(t, "120777 ../usr/bin/tool", content("bin/sh"))
	require.Equal(t, "100600 ", content("a"))
	require.EqualValues(t, modeDir|0o755, files["usr/bin"].Mode)
	inodes := map[uint64]bool{}
	for _, f := range files {
		require.Zero(t, f.MTime)
		require.Zero(t, f.UID)
		require.False(t, inodes[f.Ino], "inode numbers differ, or files would be one")
		inodes[f.Ino] = true
	}
}

// TestCPIOBytes holds the header to the kernel's description of the format
// (Documentation/driver-api/early-userspace/buffer-format.rst).
func TestCPIOBytes(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, writeCPIO(&b, []cpioEntry{{"f", modeFile | 0o644, []byte("x")}}))
	require.Equal(t, ""+
		"070701"+"00000001"+"000081A4"+"00000000"+"00000000"+"00000001"+"00000000"+"00000001"+
		"00000000"+"00000000"+"00000000"+"00000000"+"00000002"+"00000000"+"f\x00"+
		"x\x00\x00\x00"+
		"070701"+"00000000"+"00000000"+"00000000"+"00000000"+"00000001"+"00000000"+"00000000"+
		"00000000"+"00000000"+"00000000"+"00000000"+"0000000B"+"00000000"+"TRAILER!!!\x00\x00\x00\x00", b.String())
}

func TestCPIOOrder(t *testing.T) {
	entries := []cpioEntry{{"b", modeFile, nil}, {"a/c", modeFile, nil}, {"a", modeDir | 0o700, nil}}
	var one, other bytes.Buffer
	require.NoError(t, writeCPIO(&one, entries))
	entries[0], entries[2] = entries[2], entries[0]
	require.NoError(t, writeCPIO(&other, entries))
	require.Equal(t, one.Bytes(), other.Bytes())
	require.ErrorContains(t, writeCPIO(io.Discard, append(entries, cpioEntry{"/b", modeFile, nil})), "twice")
	require.Error(t, writeCPIO(brokenWriter{}, entries))
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
