// A section of the page; what the address says behind its name is given to it.
export interface Tab { element: HTMLElement; restore?: (params: URLSearchParams) => void }
