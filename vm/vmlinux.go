package vm

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
)

var errNoPayload = errors.New("no kernel that can be unpacked")

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
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoPayload, err)
	}
	if !hasPVHNote(f) {
		return nil, fmt.Errorf("%w: no PVH entry", errNoPayload)
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

// hasPVHNote looks for XEN_ELFNOTE_PHYS32_ENTRY (xen/interface/elfnote.h).
func hasPVHNote(f *elf.File) bool {
	const phys32Entry = 18
	const most = 1 << 20 // bytes of notes; the header's number is anything in a damaged file
	for _, p := range f.Progs {
		if p.Type != elf.PT_NOTE || p.Filesz > most {
			continue
		}
		notes := make([]byte, p.Filesz)
		if _, err := p.ReadAt(notes, 0); err != nil {
			continue
		}
		for len(notes) >= 12 {
			nameLen, descLen := binary.LittleEndian.Uint32(notes), binary.LittleEndian.Uint32(notes[4:])
			kind := binary.LittleEndian.Uint32(notes[8:])
			size := 12 + (uint64(nameLen)+3)&^3 + (uint64(descLen)+3)&^3
			if size > uint64(len(notes)) {
				break
			}
			if kind == phys32Entry && bytes.HasPrefix(notes[12:], []byte("Xen\x00")) {
				return true
			}
			notes = notes[size:]
		}
	}
	return false
}
