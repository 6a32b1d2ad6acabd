package vm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
)

var errNoPayload = errors.New("no kernel that can be unpacked")

// pvhNote matches XEN_ELFNOTE_PHYS32_ENTRY, an ELF note with a name of 4 bytes,
// an address of 4 or 8, and number 18 (xen/interface/elfnote.h).
var pvhNote = regexp.MustCompile(`\x04\x00{3}[\x04\x08]\x00{3}\x12\x00{3}Xen\x00`)

// unpackKernel takes the ELF kernel out of a bzImage, so that the guest need
// not decompress it under emulation. It fails for a kernel without the note
// that lets QEMU enter an ELF (PVH), which must boot as a bzImage.
//
// Layout: Documentation/arch/x86/boot.rst (protocol 2.08: payload_offset,
// payload_length, from the start of the protected-mode code).
func unpackKernel(image []byte) ([]byte, error) {
	if len(image) > 0x264 && string(image[0x202:0x206]) == "HdrS" {
		payload, err := bzPayload(image)
		if err != nil {
			return nil, err
		}
		if image, err = decompress(bytes.NewReader(payload), payloadExt(payload)); err != nil {
			return nil, fmt.Errorf("%w: %w", errNoPayload, err)
		}
	}
	if !bytes.HasPrefix(image, []byte("\x7fELF")) || !pvhNote.Match(image) {
		return nil, fmt.Errorf("%w: no ELF file with a PVH entry", errNoPayload)
	}
	return image, nil
}

func bzPayload(image []byte) ([]byte, error) {
	setupSectors := int(image[0x1f1])
	if setupSectors == 0 {
		setupSectors = 4
	}
	start := (setupSectors+1)*512 + int(binary.LittleEndian.Uint32(image[0x248:]))
	n := int(binary.LittleEndian.Uint32(image[0x24c:]))
	// The last four bytes are the unpacked size.
	if n < 4 || start < 0 || start > len(image) || n > len(image)-start {
		return nil, fmt.Errorf("%w: payload of %d bytes at %d in a file of %d", errNoPayload, n, start, len(image))
	}
	return image[start : start+n-4], nil
}

func payloadExt(payload []byte) string {
	for magic, ext := range map[string]string{"\xfd7zXZ\x00": ".xz", "\x1f\x8b": ".gz", "\x28\xb5\x2f\xfd": ".zst"} {
		if bytes.HasPrefix(payload, []byte(magic)) {
			return ext
		}
	}
	return ""
}
