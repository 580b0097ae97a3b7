package wire

// MediaAssignment is the media type of what a device has to make true, in the statement of its document.
const MediaAssignment = "application/vnd.continuo.assignment.v1+json"
