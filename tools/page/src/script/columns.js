// SPDX-License-Identifier: GPL-2.0

// Columns of numbers in the page: base64 of zlib of LEB128, as written by columns.rs.

/** Returns the numbers of a column. Each column can be read once: the page deletes its packed text. */
async function column(name) {
	const holder = byId(`column-${name}`);
	const text = holder.textContent;
	holder.remove();
	return unpack(text);
}

/** Returns the numbers of a packed column. */
async function unpack(text) {
	const packed = fromBase64(text);
	const inflated = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
	return fromLeb128(new Uint8Array(await new Response(inflated).arrayBuffer()));
}

function fromBase64(text) {
	if (Uint8Array.fromBase64)
		return Uint8Array.fromBase64(text);
	const letters = atob(text);
	const bytes = new Uint8Array(letters.length);
	for (let i = 0; i < bytes.length; i++)
		bytes[i] = letters.charCodeAt(i);
	return bytes;
}

function fromLeb128(bytes) {
	let count = 0;
	for (let i = 0; i < bytes.length; i++)
		count += bytes[i] < 0x80 ? 1 : 0;
	const numbers = new Float64Array(count);
	let at = 0, value = 0, weight = 1;
	for (let i = 0; i < bytes.length; i++) {
		const byte = bytes[i];
		value += (byte & 0x7f) * weight;
		weight *= 128;
		if (byte < 0x80) {
			numbers[at++] = value;
			value = 0;
			weight = 1;
		}
	}
	return numbers;
}
