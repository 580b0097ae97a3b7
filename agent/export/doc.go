// Package export reads what is on a device, whoever made it, so that it can become source:
// Inventory lists files with their class and their owner, and Export turns them into scores that
// say exactly what is there, so that playing them changes nothing.
//
// It fails closed. Only files of the class versionable are exported, below limits of size and
// number, and only texts, in which secrets can be looked for; what cannot be had refuses the whole
// reading, by path and with a reason, and nothing partial is returned. What a thing refers to comes
// with it: the target of a link, and of a unit or a Quadlet file its drop-ins, environment files,
// programs, credentials, bound directories, volumes, networks, and the units that it cannot be without.
// What is missing, or may not be exported, refuses what refers to it, unless systemd would do without
// it ("-"). Below /usr, and in /dev, the system brings what is needed: it is looked for, and stays.
//
// The formats of other programs are not read: what a mosquitto.conf includes by include_dir, or which
// files a program is given as arguments, is for whoever exports to name as well.
//
// Everything is read as one snapshot: all of it was there at one time, or the reading is refused. The
// package writes nothing, and decides nothing about the device.
package export
