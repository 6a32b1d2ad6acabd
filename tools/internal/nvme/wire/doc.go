// Package wire has the bytes of NVMe over RDMA: the private data of connection
// requests, commands and completions, and the pages that hosts ask for.
//
// Each structure has a parse function and an Append method. Parse functions
// refuse bytes that are too few, and read all others. Numbers are
// little-endian. The layouts are of NVM Express base 1.4 and over Fabrics 1.1;
// Linux has them in include/linux/nvme.h and nvme-rdma.h. It imports the
// standard library only.
package wire

import (
	"encoding/binary"
	"fmt"
	"strings"
)

var le = binary.LittleEndian

// short is the error of too few bytes.
func short(what string, have, want int) error {
	return fmt.Errorf("%s of %d bytes: %d are needed", what, have, want)
}

// cstring is the text before the first zero.
func cstring(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return s
}
