CREATE TABLE `order_details` (
	`orderId` integer NOT NULL,
	`productId` integer NOT NULL,
	`quantity` integer NOT NULL,
	PRIMARY KEY(`orderId`, `productId`),
	FOREIGN KEY (`orderId`) REFERENCES `orders`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`productId`) REFERENCES `products`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `order_details_productId_index` ON `order_details` (`productId`);--> statement-breakpoint
CREATE TABLE `orders` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`orderDate` text NOT NULL,
	`shippedDate` text,
	`shipAddress` text NOT NULL,
	`shipPostalCode` text,
	`shipCountry` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `products` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`name` text NOT NULL,
	`foldedName` text NOT NULL,
	`supplierId` integer NOT NULL,
	`unitPrice` integer NOT NULL,
	`unitsInStock` integer NOT NULL,
	FOREIGN KEY (`supplierId`) REFERENCES `suppliers`(`id`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `products_foldedName_index` ON `products` (`foldedName`);--> statement-breakpoint
CREATE INDEX `products_supplierId_index` ON `products` (`supplierId`);--> statement-breakpoint
CREATE TABLE `suppliers` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`companyName` text NOT NULL,
	`city` text,
	`country` text NOT NULL
);
